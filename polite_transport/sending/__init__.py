"""How one request is brought to the wire, whatever the client: beneath ``clients/``.

passage: check, enter and leave. hand: what is handed from layer to layer. checked: both around a
client's send. native: refusals as the client's own. fetching: the one fetch of a robots.txt.
body_end: where a body's end ends a turn. local_sockets: what goes to no host.
"""
