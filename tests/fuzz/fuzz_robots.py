"""Coverage-guided: ``python tests/fuzz/fuzz_robots.py -runs=20000`` (libFuzzer's arguments).

The input is a file, a URL and a token, parted by bytes of value 1; the answer has to be that of
the reference.
"""

import pathlib
import runpy
import sys

import atheris  # type: ignore[import-untyped]

with atheris.instrument_imports(include=["polite_transport.robots"]):
    from polite_transport.robots import parse_robots

reference = runpy.run_path(
    str(pathlib.Path(__file__).with_name("reference.py")), run_name="reference"
)

SEEDS = (
    b"User-agent: red\nDisallow: /a*b$\nAllow: /a%2Ab\n\x01/axb\x01red",
    b"User-agent: *\r\nDisallow: /*?s=\r\rAllow: /p?s=\x01https://h/p?s=1#f\x01blue",
    b"\xef\xbb\xbfuser agent red\ndisallow /\xc3\xa9\nCrawl-delay: .5\x01/%C3%A9/../x\x01RED",
    b"User-agent: *\n" + b"".join(b"Disallow: /*%d/\n" % n for n in range(30)) + b"\x01/x/17/\x01",
)
LONGEST_PATTERN = 60  # the reference is slow


def one_input(octets: bytes) -> None:
    body, _, rest = octets.partition(b"\x01")
    url, _, token = rest.decode("utf-8", "replace").partition("\x01")
    robots = parse_robots(body)
    verdict = robots.check(url, token)
    if len(octets) <= 20 * LONGEST_PATTERN:
        expected = reference["allowed"](body, url, token)
        if verdict.allowed is not expected:
            raise AssertionError(f"{body!r} {url!r} {token!r}: {verdict}, not {expected}")
    if not str(verdict).isprintable():
        raise AssertionError(str(verdict))
    robots.crawl_delay(token)
    robots.request_rate(token)
    robots.signals(url, token)


def main() -> None:
    for seed in SEEDS:
        one_input(seed)
    corpus = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1][0] != "-" else None
    if corpus:
        for number, seed in enumerate(SEEDS):
            (corpus / f"seed{number}").write_bytes(seed)
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
