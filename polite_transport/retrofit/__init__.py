"""Existing clients and whole programs made polite.

``clients.politely`` takes one client, ``process.install`` the whole process, ``run`` a script that
nobody may edit, with the Python processes that it starts.
"""
