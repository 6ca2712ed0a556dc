"""RFC 9309 the slow and obvious way, in bytes, to hold against the engine; they share no code.

Patterns are matched by the set of all positions that they can reach, one octet at a time.
"""

import re

UNRESERVED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
RESERVED = b":/?#[]@!$&'()*+,;="
BLANKS = b" \t\x0b\x0c\x00"
AGENT = (b"user-agent", b"useragent", b"user agent")
ALLOW = (b"allow",)
DISALLOW = (b"disallow", b"dissallow", b"dissalow", b"disalow", b"diasllow", b"disallaw")

STAR = -1
END = -2


def octets(text: bytes) -> bytes:
    """Encode what a URI cannot hold, and decode what needs no encoding."""
    out = b""
    at = 0
    while at < len(text):
        escape = re.match(rb"%([0-9A-Fa-f]{2})", text[at:])
        if escape:
            octet = int(escape[1], 16)
            out += bytes([octet]) if octet in UNRESERVED else b"%%%02X" % octet
            at += 3
        else:
            octet = text[at]
            known = octet in UNRESERVED or octet in RESERVED or octet == ord("%")
            out += bytes([octet]) if known else b"%%%02X" % octet
            at += 1
    return out


def characters(text: bytes) -> bytes:
    """Like ``octets``, with the escapes of the two special characters taken for those."""
    parts = re.split(rb"(%2[Aa]|%24)", text)
    plain = {b"%2A": b"*", b"%2a": b"*", b"%24": b"$"}
    return b"".join(plain[part] if part in plain else octets(part) for part in parts)


def items(pattern: bytes) -> list[int]:
    """Return what a pattern asks for: octets, STAR, END."""
    found: list[int] = []
    anchored = pattern.endswith(b"$")
    for number, piece in enumerate((pattern[:-1] if anchored else pattern).split(b"*")):
        found += [STAR] * (number > 0) + list(characters(piece))
    return [*found, END] if anchored else found


def matches(pattern: bytes, path: bytes) -> bool:
    reached = {0}
    for item in items(pattern):
        if item == STAR:
            reached = set(range(min(reached), len(path) + 1))
        elif item == END:
            reached &= {len(path)}
        else:
            reached = {at + 1 for at in reached if at < len(path) and path[at] == item}
        if not reached:
            return False
    return True


def token(value: bytes) -> bytes:
    if value == b"*" or (value[:1] == b"*" and value[1:2] in [bytes([b]) for b in BLANKS]):
        return b"*"
    return re.match(rb"[A-Za-z0-9_.-]*", value)[0].lower()  # type: ignore[index]


def rules_for(body: bytes, product_token: str) -> list[tuple[bool, bytes]]:
    """Return the rules of every group for the token, or of those for everyone."""
    groups: list[tuple[list[bytes], list[tuple[bool, bytes]]]] = []
    in_head, with_colon = False, False
    for line in re.split(rb"\r\n|\r|\n", body.removeprefix(b"\xef\xbb\xbf")):
        record = line.partition(b"#")[0]
        key, colon, value = record.partition(b":")
        if not colon:
            words = [word for word in re.split(rb"[ \t]+", record) if word]
            if len(words) != 2:
                continue
            key, value = words
        key, value = key.strip(BLANKS).lower(), value.strip(BLANKS)
        if key.startswith(AGENT):
            if not in_head:
                groups.append(([], []))
                with_colon = True
            in_head = True
            with_colon = with_colon and bool(colon)
            groups[-1][0].append(token(value))
        elif key.startswith(ALLOW + DISALLOW) and (colon or not with_colon):
            in_head = False
            if groups and value:
                groups[-1][1].append((key.startswith(ALLOW), value))
    asked = token(product_token.encode("utf-8", "surrogatepass"))
    if not asked or not any(asked in agents for agents, _ in groups):
        asked = b"*"
    return [rule for agents, rules in groups if asked in agents for rule in rules]


def path_of(url: str) -> bytes:
    url = url.partition("#")[0]
    absolute = re.match(r"[^/?#]+://[^/?#]*", url)
    path = (url[absolute.end() :] if absolute else url).encode("utf-8", "surrogatepass")
    return characters(path if path.startswith(b"/") else b"/" + path)


def without_dots(path: bytes) -> bytes:
    """RFC 3986 section 5.2.4, by its own steps."""
    rest, mark, query = path.partition(b"?")
    out = b""
    while rest:
        if rest.startswith(b"/./") or rest == b"/.":
            rest = b"/" + rest[3:]
        elif rest.startswith(b"/../") or rest == b"/..":
            rest = b"/" + rest[4:]
            out = out[: out.rfind(b"/")] if b"/" in out else b""
        else:
            end = rest.find(b"/", 1)
            end = len(rest) if end < 0 else end
            out, rest = out + rest[:end], rest[end:]
    return out + mark + query


def allowed(body: bytes, url: str, product_token: str) -> bool:
    """Return what the engine should say."""
    path = path_of(url)
    if path == b"/robots.txt":
        return True
    rules = rules_for(body, product_token)
    for form in (path, without_dots(path)):
        best = max(
            ((len(octets(pattern)), allow) for allow, pattern in rules if matches(pattern, form)),
            default=(0, True),
        )
        if not best[1]:
            return False
    return True
