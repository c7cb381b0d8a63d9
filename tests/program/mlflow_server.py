"""Servers for mlflow.sh, on loopback; the ports go to a file.

mlflow_server.py PORTS real FOLDER       MLflow's own application: SQLite and a folder of artefacts
mlflow_server.py PORTS fake CERTIFICATE  one that refuses, is busy, breaks or hangs, by the first part
                                         of the path; its second port speaks TLS"""
import base64
import collections
import http.server
import json
import os
import ssl
import sys
import threading
import time

ports, kind, place = sys.argv[1:4]


def tell(*numbers):
    with open(ports + ".new", "w") as file:
        print(*numbers, file=file)
    os.rename(ports + ".new", ports)


def real():
    store = f"sqlite:///{place}/mlflow.db"
    os.environ.update({"_MLFLOW_SERVER_FILE_STORE": store, "_MLFLOW_SERVER_REGISTRY_STORE": store,
                       "_MLFLOW_SERVER_ARTIFACT_DESTINATION": place, "_MLFLOW_SERVER_SERVE_ARTIFACTS": "true",
                       "_MLFLOW_SERVER_ARTIFACT_ROOT": "mlflow-artifacts:/"})
    from mlflow.server import app
    from werkzeug.serving import make_server
    app.test_client().get("/api/2.0/mlflow/experiments/get-by-name?experiment_name=none")  # the tables are made
    server = make_server("127.0.0.1", 0, app, threaded=True)
    tell(server.port)
    server.serve_forever()


counts, made = collections.Counter(), {}
basic = "Basic " + base64.b64encode(b"user:word").decode()


class Fake(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body, **headers):
        text = json.dumps(body).encode()
        self.send_response(status)
        for key, value in {"Content-Length": len(text), **headers}.items():
            self.send_header(key.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(text)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        mode = self.path.split("/")[1]
        counts[mode] += 1
        if mode == "refuse" and self.headers.get("Authorization") not in ("Bearer secret", basic):
            return self.answer(401, {"message": "who are you?"})
        if mode == "busy" and counts[mode] <= 2:
            return self.answer(429, {"message": "too many"}, Retry_After=1)
        if mode == "broken":
            return self.answer(500, {"message": "out of order\nTraceback"})
        if mode == "hang":
            time.sleep(60)
        if self.path.endswith("log-batch"):
            batch = json.loads(body)
            if len(batch["metrics"]) > 1000 or len(batch["params"]) > 100 or len(body) > 1e6:
                return self.answer(400, {"message": "a batch is too large"})
        answer = {"experiment": {"experiment_id": "1"}}
        if self.path.endswith("create"):
            tags = json.loads(body)["tags"]
            made[mode, tags[0]["value"]] = answer["run"] = {
                "info": {"run_id": "r", "artifact_uri": "s3://elsewhere"}, "data": {"tags": tags}}
        if self.path.endswith("search"):
            answer["runs"] = [run for (m, name), run in made.items() if m == mode and name in body.decode()]
        self.answer(200, answer)

    do_GET = do_PUT = do_POST

    def log_message(self, *arguments):
        pass


def fake():
    servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Fake) for _ in range(2)]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place)
    servers[1].socket = context.wrap_socket(servers[1].socket, server_side=True)
    threading.Thread(target=servers[1].serve_forever, daemon=True).start()
    tell(*(server.server_address[1] for server in servers))
    servers[0].serve_forever()


globals()[kind]()
