import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from verify import verify

done: set[str] = set()  # a table in your database is better: it outlives the program
one_at_a_time = threading.Lock()


class Receiver(BaseHTTPRequestHandler):
    timeout = 15

    def do_POST(self) -> None:
        self.send_response(self.receive())
        self.send_header("Content-Length", "0")
        self.end_headers()

    def receive(self) -> int:
        """Returns the status of the response."""
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or int(length) > 20_000:
            return 413
        body = self.rfile.read(int(length))
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            verify(os.environ["WEBHOOK_SECRET"], headers, body)
        except ValueError:
            return 401
        with one_at_a_time:
            if headers["webhook-id"] not in done:
                print(body.decode(), flush=True)  # do your work here, or store the body: respond within 15 seconds
                done.add(headers["webhook-id"])
        return 200


ThreadingHTTPServer(("", int(os.environ["PORT"])), Receiver).serve_forever()
