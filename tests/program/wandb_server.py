"""A server for `wandb sync`, on loopback: takes what its client uploads and keeps each request.

wandb_server.py PORT REQUESTS      the port goes to one file, the requests to the other, one a line"""
import gzip
import http.server
import json
import os
import sys

port, kept = sys.argv[1], open(sys.argv[2], "w")


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, body):
        query, given = body.get("query", ""), body.get("variables", {})
        if "upsertBucket" in query:
            project = {"id": "p", "name": given["project"], "entity": {"id": "e", "name": "me"}}
            return {"upsertBucket": {"inserted": True, "bucket": {
                "id": "b", "name": given["name"], "displayName": given.get("displayName"), "description": "",
                "config": given.get("config"), "sweepName": None, "project": project, "historyLineCount": 0}}}
        return {"viewer": {"id": "1", "entity": "me", "username": "me", "flags": "{}", "teams": {"edges": []}},
                "serverInfo": {"features": [], "cliVersionInfo": {"max_cli_version": "0.31.0"}}, "project": None,
                "createRunFiles": {"runID": "b", "uploadHeaders": [], "files": []}}

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        try:
            body = json.loads(body)
        except ValueError:
            body = {}
        print(json.dumps([self.path, body]), file=kept, flush=True)
        text = json.dumps({"data": self.answer(body)} if self.path == "/graphql" else {}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_PUT = do_POST

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
with open(port + ".new", "w") as file:
    print(server.server_port, file=file)
os.rename(port + ".new", port)
server.serve_forever()
