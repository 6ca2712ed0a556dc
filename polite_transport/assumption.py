"""What a test suite takes for granted while its HTTP is mocked."""

# One for each ``testing.assume_allowed`` that is not over. Of the whole process, as mocks are: the
# program under test has threads and event loops of its own. Nothing keeps it beyond its end.
ASSUMED_ALLOWED: list[object] = []
