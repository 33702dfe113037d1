"""The messages and the stub of a service of src/foundation/protocol, made by protoc as the build does."""

import subprocess
import tempfile
import types

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from foliot_tools.server import ROOT


def personal_protocol():
    return protocol("foliot_personal.proto", "foliot.personal.PersonalModels")


def applications_protocol():
    return protocol("foliot_applications.proto", "foliot.applications.Applications")


def jobs_protocol():
    return protocol("foliot_jobs.proto", "foliot.jobs.Jobs")


def protocol(proto, service):
    """(messages by name, a function that makes the stub of a channel)."""
    pool = descriptor_pool.DescriptorPool()
    with tempfile.NamedTemporaryFile() as compiled:
        folder = ROOT / "src/foundation/protocol"
        subprocess.run(["protoc", f"--proto_path={folder}", f"--descriptor_set_out={compiled.name}", proto], check=True)
        for file in descriptor_pb2.FileDescriptorSet.FromString(compiled.read()).file:
            pool.Add(file)
    file = pool.FindFileByName(proto)
    messages = {name: message_factory.GetMessageClass(of) for name, of in file.message_types_by_name.items()}

    def stub_of(channel):
        methods = {}
        for method in pool.FindServiceByName(service).methods:
            methods[method.name] = channel.unary_unary(
                f"/{service}/{method.name}",
                request_serializer=messages[method.input_type.name].SerializeToString,
                response_deserializer=messages[method.output_type.name].FromString,
            )
        return types.SimpleNamespace(**methods)

    return types.SimpleNamespace(**messages), stub_of
