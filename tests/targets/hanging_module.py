"""Never finishes its import."""

import time

while True:
    time.sleep(0.01)
