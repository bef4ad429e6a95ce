"""A stand-in for Kubernetes: the calls of its API that a Spark driver makes, and pods as containers.

Rule: it is no cluster, and proves nothing about one. It shows that manifest, image and Spark fit each
other: the driver asks for what the Role allows, and its executors start from the template and find it.
"""

from __future__ import annotations

import contextlib
import json
import queue
import re
import ssl
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from lab.containers.engine import Engine, Failed

API = "kubernetes.default.svc"
PORT = 443
NAMESPACE = "default"
_COLLECTION = re.compile(r"/api/v1/namespaces/[\w-]+/(\w+)(?:/([\w.-]+))?$")
_VERBS = {"POST": "create", "PATCH": "patch", "PUT": "update"}
_KINDS = {
    "pods": "Pod",
    "configmaps": "ConfigMap",
    "services": "Service",
    "persistentvolumeclaims": "PersistentVolumeClaim",
}
Thing = dict[str, Any]


@dataclass
class Cluster:
    """Objects by their kind and name, who watches them, and what was asked.

    Attributes:
        engine: runs pods as containers.
        network: of the engine, with names for them.
        subnet: the first three numbers of its addresses.
        folder: for files of ConfigMaps.
        extra: more words of `docker run` for the pods.
    """

    engine: Engine
    network: str
    subnet: str
    folder: Path
    extra: tuple[str, ...] = ()
    objects: dict[tuple[str, str], Thing] = field(default_factory=dict)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    watchers: list[queue.SimpleQueue[Thing]] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)
    addresses: Iterator[int] = field(default_factory=lambda: iter(range(10, 250)))

    def create(self, kind: str, thing: Thing) -> Thing:
        """Store an object; a pod is also started."""
        name = thing["metadata"]["name"]
        thing["metadata"] |= {"namespace": NAMESPACE, "uid": f"uid-{name}", "resourceVersion": "1"}
        thing |= {"apiVersion": "v1", "kind": _KINDS[kind]}
        self._store(kind, thing, "ADDED")
        if kind == "pods":
            address = f"{self.subnet}.{next(self.addresses)}"
            thing["status"] = _status("Pending", address)
            threading.Thread(target=self._run, args=(thing, address), daemon=True).start()
        return thing

    def delete(self, kind: str, name: str) -> None:
        """Remove an object; the container of a pod too."""
        with self.lock:
            thing = self.objects.pop((kind, name), None)
        if thing is None:
            return
        self._tell("DELETED", thing)
        if kind == "pods":
            with contextlib.suppress(Failed):
                self.engine.docker("rm", "--force", name)

    def selected(self, kind: str, selector: str) -> list[Thing]:
        """Return objects with the labels of a selector."""
        wanted = dict(
            each.split("=", 1) for each in selector.split(",") if "=" in each and "!" not in each
        )
        with self.lock:
            found = [thing for (each, _), thing in self.objects.items() if each == kind]
        return [each for each in found if wanted.items() <= each["metadata"].get("labels", {}).items()]

    def _store(self, kind: str, thing: Thing, event: str) -> None:
        with self.lock:
            self.objects[kind, thing["metadata"]["name"]] = thing
        self._tell(event, thing)

    def _tell(self, event: str, thing: Thing) -> None:
        for watcher in list(self.watchers):
            watcher.put({"type": event, "object": thing})

    def _run(self, pod: Thing, address: str) -> None:
        """Run a pod until it ends, and keep its status."""
        name = pod["metadata"]["name"]
        pod["status"] = _status("Running", address)
        self._tell("MODIFIED", pod)
        try:
            self.engine.docker(*self._words(pod, address), seconds=3600)
            phase, code = "Succeeded", 0
        except Failed as reason:
            (self.folder / f"{name}.failed").write_text(str(reason))
            phase, code = "Failed", 1
        if ("pods", name) in self.objects:
            pod["status"] = _status(phase, address, code)
            self._tell("MODIFIED", pod)

    def _words(self, pod: Thing, address: str) -> list[str]:
        """Return `docker run` for what a pod's only container asks for."""
        name, spec = pod["metadata"]["name"], pod["spec"]
        (container,) = spec["containers"]
        words = ["run", f"--name={name}", f"--network={self.network}", f"--ip={address}"]
        words += [f"--hostname={spec.get('hostname', name)}", *self.extra]
        if subdomain := pod["metadata"].get("annotations", {}).get("subdomain"):
            words.append(f"--network-alias={name}.{subdomain}")
        words += _rights(spec, container)
        variables = _variables(pod, container, address)
        words += [f"--env={key}={value}" for key, value in variables.items()]
        for mount in container.get("volumeMounts", []):
            words.append(self._mount(spec, mount))
        arguments = [_expanded(word, variables) for word in container.get("args", [])]
        return [*words, container["image"], *arguments]

    def _mount(self, spec: Thing, mount: Mapping[str, Any]) -> str:
        (volume,) = (each for each in spec["volumes"] if each["name"] == mount["name"])
        target = mount["mountPath"]
        if "emptyDir" in volume:
            return f"--tmpfs={target}:rw,mode=1777,exec"
        if "hostPath" in volume:
            return f"--volume={volume['hostPath']['path']}:{target}"
        name = volume["configMap"]["name"]
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        for file, text in self.objects["configmaps", name].get("data", {}).items():
            (folder / file).write_text(text)
        return f"--volume={folder}:{target}:ro"


def _status(phase: str, address: str, code: int | None = None) -> Thing:
    ready = "True" if phase == "Running" else "False"
    state = {"running": {}} if code is None else {"terminated": {"exitCode": code}}
    return {
        "phase": phase,
        "podIP": address,
        "conditions": [{"type": "Ready", "status": ready}],
        "containerStatuses": [{"name": "container", "ready": ready == "True", "state": state}],
    }


def _rights(spec: Thing, container: Thing) -> Iterator[str]:
    pod, own = spec.get("securityContext", {}), container.get("securityContext", {})
    if "runAsUser" in pod:
        yield f"--user={pod['runAsUser']}:{pod['runAsGroup']}"
    if own.get("readOnlyRootFilesystem"):
        yield "--read-only"
    if own.get("allowPrivilegeEscalation") is False:
        yield "--security-opt=no-new-privileges"
    yield from (f"--cap-drop={each}" for each in own.get("capabilities", {}).get("drop", []))


def _variables(pod: Thing, container: Thing, address: str) -> dict[str, str]:
    fields = {
        "metadata.name": pod["metadata"]["name"],
        "metadata.namespace": NAMESPACE,
        "status.podIP": address,
    }
    found = dict[str, str]()
    for each in container.get("env", []):
        path = each.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        found[each["name"]] = fields[path] if path else each.get("value", "")
    return found


def _expanded(word: str, variables: Mapping[str, str]) -> str:
    return re.sub(r"\$\((\w+)\)", lambda found: variables.get(found[1], found[0]), word)


class _Calls(BaseHTTPRequestHandler):
    """One call of the API."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def _handle(self) -> None:
        place = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(place.query).items()}
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        if (found := _COLLECTION.match(place.path)) is None:
            return self._answer({"kind": "Status", "code": 404, "message": place.path}, 404)
        kind, name = found.groups()
        verb = self._verb(name, query)
        self.server.cluster.calls[kind, verb] += 1
        if kind not in _KINDS:
            return self._answer({"kind": "Status", "code": 403, "message": kind}, 403)
        if "Upgrade" in self.headers:  # to a web socket; the client then asks for a stream of lines
            return self._answer({"kind": "Status", "code": 503}, 503)
        if verb == "watch":
            return self._watch(kind)
        return self._answer(*self._changed(verb, kind, name, query, body))

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _handle

    def _verb(self, name: str | None, query: Mapping[str, str]) -> str:
        if self.command == "GET":
            return "watch" if query.get("watch") in ("true", "1") else "get" if name else "list"
        if self.command == "DELETE":
            return "delete" if name else "deletecollection"
        return _VERBS[self.command]

    def _changed(
        self, verb: str, kind: str, name: str | None, query: Mapping[str, str], body: Thing
    ) -> tuple[Thing, int]:
        cluster = self.server.cluster
        if verb == "create":
            return cluster.create(kind, body), 201
        chosen = cluster.selected(kind, query.get("labelSelector", ""))
        if verb == "list":
            if wanted := query.get("fieldSelector", "").removeprefix("metadata.name="):
                chosen = [each for each in chosen if each["metadata"]["name"] == wanted]
            meta = {"resourceVersion": "1"}
            return {
                "kind": f"{_KINDS[kind]}List",
                "apiVersion": "v1",
                "metadata": meta,
                "items": chosen,
            }, 200
        if verb == "deletecollection":
            for each in chosen:
                cluster.delete(kind, each["metadata"]["name"])
            return {"kind": "Status", "status": "Success"}, 200
        thing = cluster.objects.get((kind, name or ""))
        if thing is None:
            return {"kind": "Status", "code": 404, "message": f"no {kind} {name}"}, 404
        if verb == "delete":
            cluster.delete(kind, thing["metadata"]["name"])
        return thing, 200

    def _answer(self, thing: Thing, code: int) -> None:
        text = json.dumps(thing).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _watch(self, kind: str) -> None:
        events = queue.SimpleQueue[Thing]()
        cluster = self.server.cluster
        cluster.watchers.append(events)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        with contextlib.suppress(OSError, queue.Empty):
            while True:
                event = events.get(timeout=600)
                if event["object"]["kind"] == _KINDS[kind]:
                    self.wfile.write(json.dumps(event).encode() + b"\n")
                    self.wfile.flush()
        cluster.watchers.remove(events)

    def log_message(self, *_words: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, cluster: Cluster, address: tuple[str, int], tls: ssl.SSLContext) -> None:
        super().__init__(address, _Calls)
        self.cluster = cluster
        self.socket = tls.wrap_socket(self.socket, server_side=True)


@contextlib.contextmanager
def served(cluster: Cluster, host: str, certificate: Path, key: Path) -> Iterator[None]:
    """Serve the API on an address."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    server = _Server(cluster, (host, PORT), tls)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
