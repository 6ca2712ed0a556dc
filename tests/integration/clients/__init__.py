"""What holds for every client, seen in a site's log."""
