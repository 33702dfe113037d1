"""A stand-in for an object store with the interface of S3, in this process. It checks each signature as Amazon documents
Signature Version 4, and can refuse, break and damage answers."""

import contextlib
import datetime
import hashlib
import hmac
import http.server
import os
import re
import threading
import urllib.parse
from xml.sax.saxutils import escape


def sign(message, key):
    return hmac.new(key, message.encode(), hashlib.sha256).digest()


def encoded(text, safe=""):
    return urllib.parse.quote(text, safe="-._~" + safe)


class SignatureError(Exception):
    """(status, code, message) of the refusal."""


def check_signature(handler, secrets, body_sha256, skew=datetime.timedelta()):
    """Computes the signature of a request anew. `secrets`: by key id; `skew`: of the store's clock."""
    given = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/,]+)/(\d{8})/([^/]+)/s3/aws4_request, *"
                         r"SignedHeaders=([^,]+), *Signature=([0-9a-f]{64})", handler.headers.get("Authorization", ""))
    if not given:
        raise SignatureError(403, "AccessDenied", "no signature")
    key_id, day, region, names, signature = given.groups()
    if key_id not in secrets:
        raise SignatureError(403, "InvalidAccessKeyId", "there is no such key")
    if handler.headers.get("x-amz-content-sha256") != body_sha256:
        raise SignatureError(400, "XAmzContentSHA256Mismatch", "the body has another hash")
    missing = {"host", "x-amz-date", "x-amz-content-sha256"} - set(names.split(";"))
    if missing or names.split(";") != sorted(names.split(";")):
        raise SignatureError(403, "SignatureDoesNotMatch", f"headers that must be signed: {missing}")
    then = datetime.datetime.strptime(handler.headers["x-amz-date"], "%Y%m%dT%H%M%SZ")
    now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None) + skew
    if abs(now - then) > datetime.timedelta(minutes=15):
        raise SignatureError(403, "RequestTimeTooSkewed", "The difference between the request time and the current time "
                                                          "is too large.")
    path, _, query = handler.path.partition("?")
    pairs = [pair.partition("=")[::2] for pair in query.split("&") if pair]
    canonical_query = "&".join(f"{name}={value}" for name, value in sorted(
        (encoded(urllib.parse.unquote(name)), encoded(urllib.parse.unquote(value))) for name, value in pairs))
    headers = "".join(f"{name}:{' '.join(handler.headers[name].split())}\n" for name in names.split(";"))
    request = "\n".join([handler.command, encoded(urllib.parse.unquote(path), "/"), canonical_query, headers, names,
                         body_sha256])
    scope = f"{day}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", handler.headers["x-amz-date"], scope,
                      hashlib.sha256(request.encode()).hexdigest()])
    key = ("AWS4" + secrets[key_id]).encode()
    for part in (day, region, "s3", "aws4_request"):
        key = sign(part, key)
    if not hmac.compare_digest(sign(text, key).hex(), signature):
        raise SignatureError(403, "SignatureDoesNotMatch", "The request signature does not match.")


class ObjectStore:
    """`with ObjectStore() as store`: buckets = {name: {key: bytes}}, whose credentials and address are then in the
    environment of this process. `requests`: the (method, key or None) of all."""

    KEY, SECRET = "AKIDEXAMPLE", "wJalr/UtnFEMI+K7MDENG"

    def __init__(self, page=1000, part_bytes=None):
        self.buckets = {"models": {}}
        self.page = page
        self.part_bytes = part_bytes  # of objects that are longer: written in parts of so many bytes
        self.requests, self.lock = [], threading.Lock()
        self.skew = datetime.timedelta()
        self.denied = set()  # keys
        self.cuts, self.cut_after = 0, 0  # answers that are left to be cut, after so many bytes
        self.damages = 0  # answers that are left to be damaged
        self.on_get = lambda key: None
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                outer.answer(self)

            do_GET = do_HEAD = do_PUT = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.environment = {"AWS_ACCESS_KEY_ID": self.KEY, "AWS_SECRET_ACCESS_KEY": self.SECRET,
                            "AWS_ENDPOINT_URL": self.url, "AWS_REGION": "eu-west-1"}

    def __enter__(self):
        self.before = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        for name, value in self.before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        self.server.shutdown()
        self.server.server_close()

    def put_folder(self, folder, prefix="", bucket="models"):
        """The files of a folder as objects."""
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                self.buckets[bucket][prefix + str(file.relative_to(folder))] = file.read_bytes()

    def count(self, method, key=None):
        with self.lock:
            return sum(1 for request in self.requests if request[0] == method and (key is None) == (request[1] is None))

    def etag(self, content):
        size = self.part_bytes
        if size is None or len(content) <= size:
            return hashlib.md5(content).hexdigest()
        parts = [hashlib.md5(content[at:at + size]).digest() for at in range(0, len(content), size)]
        return f"{hashlib.md5(b''.join(parts)).hexdigest()}-{len(parts)}"

    def answer(self, handler):
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        path, _, query = handler.path.partition("?")
        bucket, _, key = urllib.parse.unquote(path).lstrip("/").partition("/")
        query = {name: values[0] for name, values in urllib.parse.parse_qs(query, keep_blank_values=True).items()}
        with self.lock:
            self.requests.append((handler.command, key or None))
        try:
            check_signature(handler, {self.KEY: self.SECRET}, hashlib.sha256(body).hexdigest(), self.skew)
            if bucket not in self.buckets:
                raise SignatureError(404, "NoSuchBucket", "The specified bucket does not exist")
            if key in self.denied:
                raise SignatureError(403, "AccessDenied", "Access Denied")
            if not key:
                return self.respond(handler, 200, self.listing(self.buckets[bucket], query), {})
            if handler.command == "PUT":
                self.buckets[bucket][key] = body
                return self.respond(handler, 200, b"", {"ETag": f'"{self.etag(body)}"'})
            if handler.command == "GET":
                self.on_get(key)
            if key not in self.buckets[bucket]:
                raise SignatureError(404, "NoSuchKey", "The specified key does not exist.")
            return self.give(handler, self.buckets[bucket][key], query)
        except SignatureError as error:
            status, code, message = error.args
            text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
            return self.respond(handler, status, text.encode(), {})

    def listing(self, objects, query):
        if query.get("list-type") != "2":
            raise SignatureError(501, "NotImplemented", "only ListObjectsV2")
        coded = encoded if query.get("encoding-type") == "url" else (lambda text, safe="": escape(text))
        keys = sorted(key for key in objects if key.startswith(query.get("prefix", ""))
                      and key > query.get("continuation-token", ""))
        page, more = keys[:self.page], len(keys) > self.page
        contents = "".join(f"<Contents><Key>{coded(key, '/')}</Key><Size>{len(objects[key])}</Size>"
                           f"<ETag>&quot;{self.etag(objects[key])}&quot;</ETag></Contents>" for key in page)
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        kind = "<EncodingType>url</EncodingType>" if "encoding-type" in query else ""
        return (f"<?xml version='1.0' encoding='UTF-8'?><ListBucketResult>{kind}<IsTruncated>{str(more).lower()}"
                f"</IsTruncated>{token}{contents}</ListBucketResult>").encode()

    def give(self, handler, content, query):
        etag = f'"{self.etag(content)}"'
        if handler.headers.get("If-Match", etag) != etag:
            raise SignatureError(412, "PreconditionFailed", "At least one of the preconditions did not hold")
        headers, status, part = {"ETag": etag}, 200, content
        if "partNumber" in query and self.part_bytes:
            status, part = 206, content[:self.part_bytes]
        if match := re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", "")):
            begin = int(match[1])
            if begin >= len(content):
                raise SignatureError(416, "InvalidRange", "The requested range is not satisfiable")
            status, part = 206, content[begin:]
            headers["Content-Range"] = f"bytes {begin}-{len(content) - 1}/{len(content)}"
        self.respond(handler, status, part, headers)

    def respond(self, handler, status, body, headers):
        length = len(body)
        broken = False
        if headers and status in (200, 206) and handler.command == "GET":
            with self.lock:
                if self.cuts > 0 and length > self.cut_after:
                    self.cuts -= 1
                    body, broken = body[:self.cut_after], True
                if self.damages > 0 and body:
                    self.damages -= 1
                    at = len(body) // 2
                    body = body[:at] + bytes([body[at] ^ 1]) + body[at + 1:]
        when = datetime.datetime.now(datetime.timezone.utc) + self.skew
        handler.send_response_only(status)
        handler.send_header("Date", when.strftime("%a, %d %b %Y %H:%M:%S GMT"))
        for name, value in {**headers, "Content-Length": str(length)}.items():
            handler.send_header(name, value)
        handler.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            if handler.command != "HEAD":
                handler.wfile.write(body)
        if broken:
            handler.close_connection = True
