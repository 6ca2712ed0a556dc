"""urllib3: ``PolitePoolManager`` and ``PoliteProxyManager``, in ``manager``.

Nothing is imported here: requests builds on parts of it.
"""
