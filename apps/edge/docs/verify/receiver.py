import os
from http.server import BaseHTTPRequestHandler, HTTPServer

from verify import verify

done: set[str] = set()  # better a table of your database: it outlives the program


class Receiver(BaseHTTPRequestHandler):
    timeout = 15

    def do_POST(self) -> None:
        self.send_response(self.receive())
        self.send_header("Content-Length", "0")
        self.end_headers()

    def receive(self) -> int:
        """Returns the status of the answer."""
        length = int(self.headers.get("Content-Length", 0))
        if length > 20_000:
            return 413
        body = self.rfile.read(length)
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            verify(os.environ["WEBHOOK_SECRET"], headers, body)
        except ValueError:
            return 401
        if headers["webhook-id"] not in done:
            print(body.decode(), flush=True)  # your work, or store the body for it: answer within 15 seconds
            done.add(headers["webhook-id"])
        return 200


HTTPServer(("", int(os.environ["PORT"])), Receiver).serve_forever()
