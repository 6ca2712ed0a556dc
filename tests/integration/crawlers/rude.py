"""A crawler that keeps nothing: it follows every link, at once, and asks again when turned away."""

import re
import sys
import urllib.error
import urllib.request
from urllib.parse import urljoin

todo, seen = [sys.argv[1]], set()
while todo:
    url = todo.pop(0)
    if url in seen:
        continue
    seen.add(url)
    try:
        with urllib.request.urlopen(url) as response:
            page, url = response.read().decode(), response.url
    except urllib.error.HTTPError as error:
        if error.code == 503:
            seen.discard(url)
            todo.append(url)
        continue
    todo += [urljoin(url, link) for link in re.findall(r'href="([^"]+)"', page)]
