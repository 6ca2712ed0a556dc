import pytest

from polite_transport.robots import product_token

CHROME = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/130.0 Safari/537.36"
)


@pytest.mark.parametrize(
    ("user_agent", "token"),
    [
        ("MyBot/1.0 (+https://example.org/bot)", "MyBot"),
        ("MyBot", "MyBot"),
        ("MyBot (mail@example.org)", "MyBot"),
        ("  MyBot/1.0", "MyBot"),
        ("MJ12bot/v1.4", "MJ12bot"),
        ("python-requests/2.34", "python-requests"),
        ("archive.org_bot", "archive.org_bot"),
        ("Mozilla/5.0 (compatible; MyBot/1.0; +https://example.org/bot)", "MyBot"),
        ("Mozilla/5.0 (compatible;MyBot/1.0)", "MyBot"),
        ("Mozilla/5.0 (COMPATIBLE; MyBot/v2)", "MyBot"),
        (
            "Mozilla/5.0 (Linux; Android 6.0.1) Chrome/130 (compatible; MyBot/2.1; +http://e.org)",
            "MyBot",
        ),
        (
            "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; MyBot/1.0) Chrome/130",
            "MyBot",
        ),
        ("Mozilla/5.0 (compatible; Windows; MyBot/1.0)", "MyBot"),
        ("Mozilla/5.0 (compatible; no version; +https://example.org/bot)", "Mozilla"),
        ("Mozilla/5.0 (compatible; U; old) AppleWebKit/420 (KHTML, like Gecko)", "Mozilla"),
        ("Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.2)", "Mozilla"),
        ("Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.2; Trident/6.0)", "Mozilla"),
        ("Mozilla/5.0 (incompatible; MyBot/1.0)", "Mozilla"),
        (CHROME, "Mozilla"),
        ("", ""),
        ("   ", ""),
        ("(nameless)", ""),
        ("\u0416", ""),
    ],
)
def test_product_token(user_agent: str, token: str) -> None:
    assert product_token(user_agent) == token
