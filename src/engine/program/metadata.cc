#include "engine/program/metadata.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <limits>
#include <utility>

#include "package.pb.h"

namespace foliot {
namespace {

// In the file a tensor's position is written plus one, so that 0 means none.
uint32_t encode_index(TensorIndex index) { return index == kNoTensor ? 0 : index + 1; }
TensorIndex decode_index(uint32_t index) { return index == 0 ? kNoTensor : index - 1; }

template <typename From, typename To>
void encode_list(const From& from, To* to) {
  for (const auto& value : from) to->Add(value);
}

template <typename T, typename From>
std::vector<T> decode_list(const From& from) {
  return std::vector<T>(from.begin(), from.end());
}

Result<DataType> decode_type(const std::string& name) {
  if (const auto type = parse_data_type(name); type && *type != DataType::kBytes) return *type;
  return Status::invalid_argument("unknown data type '" + name + "'");
}

void encode(const TensorSpec& from, package::TensorSpec* to) {
  to->set_name(from.name);
  to->set_type(std::string(to_string(from.type)));
  encode_list(from.shape, to->mutable_shape());
  for (const std::string& name : from.dimension_names) to->add_dimension_names(name);
  for (const std::string& label : from.labels) to->add_labels(label);
}

Result<TensorSpec> decode(const package::TensorSpec& from) {
  TensorSpec to;
  to.name = from.name();
  FOLIOT_ASSIGN_OR_RETURN(to.type, decode_type(from.type()));
  to.shape = decode_list<int64_t>(from.shape());
  to.dimension_names = decode_list<std::string>(from.dimension_names());
  to.labels = decode_list<std::string>(from.labels());
  return to;
}

void encode(const ProgramBucket& from, package::Bucket* to) {
  for (const auto& [name, value] : from.dimensions) {
    package::Bucket::Dimension* dimension = to->add_dimensions();
    dimension->set_name(name);
    dimension->set_value(value);
  }
  for (Duration duration : from.seed_exec) to->add_seed_exec_nanoseconds(duration.nanoseconds());
}

ProgramBucket decode(const package::Bucket& from) {
  ProgramBucket to;
  for (const auto& dimension : from.dimensions()) to.dimensions[dimension.name()] = dimension.value();
  for (int64_t nanoseconds : from.seed_exec_nanoseconds()) to.seed_exec.push_back(Duration::nanoseconds(nanoseconds));
  return to;
}

void encode(const Tensor& from, package::Tensor* to) {
  to->set_name(from.name);
  to->set_type(std::string(to_string(from.type)));
  encode_list(from.shape, to->mutable_shape());
  to->set_layout(from.layout);
  to->set_size_bytes(from.bytes);
  to->set_place(static_cast<uint32_t>(from.place));
  to->set_offset(from.offset);
  to->set_alias_of(encode_index(from.alias_of));
  to->set_alias_offset(from.alias_offset);
  to->set_constant(from.constant);
}

Result<Tensor> decode(const package::Tensor& from) {
  Tensor to;
  to.name = from.name();
  FOLIOT_ASSIGN_OR_RETURN(to.type, decode_type(from.type()));
  to.shape = decode_list<int64_t>(from.shape());
  to.layout = from.layout();
  to.bytes = from.size_bytes();
  if (from.place() > static_cast<uint32_t>(Place::kOutput)) {
    return Status::invalid_argument("tensor '" + from.name() + "' has no valid place");
  }
  to.place = static_cast<Place>(from.place());
  to.offset = from.offset();
  to.alias_of = decode_index(from.alias_of());
  to.alias_offset = from.alias_offset();
  to.constant = from.constant();
  return to;
}

Result<Function> decode_function(const std::string& name) {
  if (const auto function = parse_function(name)) return *function;
  return Status::invalid_argument("unknown function '" + name + "'");
}

// In the file a function is a text like others; these attributes are functions.
bool is_function(const std::string& attribute) { return attribute == "function" || attribute == "reduction"; }

struct AttributeEncoder {
  package::Attribute* to;
  void operator()(int64_t value) const { to->set_integer(value); }
  void operator()(double value) const { to->set_real(value); }
  void operator()(const std::string& value) const { to->set_text(value); }
  void operator()(Function function) const { to->set_text(std::string(to_string(function))); }
  void operator()(const std::vector<int64_t>& values) const {
    encode_list(values, to->mutable_integers()->mutable_values());
  }
  void operator()(const std::vector<double>& values) const {
    encode_list(values, to->mutable_reals()->mutable_values());
  }
};

Result<Attribute> decode(const package::Attribute& from) {
  switch (from.value_case()) {
    case package::Attribute::kInteger: return Attribute(from.integer());
    case package::Attribute::kReal: return Attribute(from.real());
    case package::Attribute::kText: {
      if (!is_function(from.name())) return Attribute(from.text());
      FOLIOT_ASSIGN_OR_RETURN(const Function function, decode_function(from.text()));
      return Attribute(function);
    }
    case package::Attribute::kIntegers: return Attribute(decode_list<int64_t>(from.integers().values()));
    case package::Attribute::kReals: return Attribute(decode_list<double>(from.reals().values()));
    case package::Attribute::VALUE_NOT_SET: break;
  }
  return Status::invalid_argument("attribute '" + from.name() + "' has no value");
}

void encode(const PostOperation& from, package::PostOperation* to) {
  to->set_kind(static_cast<uint32_t>(from.kind));
  to->set_function(std::string(to_string(from.function)));
  to->set_alpha(from.alpha);
  to->set_beta(from.beta);
  to->set_input(from.input);
}

Result<PostOperation> decode(const package::PostOperation& from) {
  if (from.kind() > static_cast<uint32_t>(PostOperation::Kind::kBinary)) {
    return Status::invalid_argument("unknown kind of post-operation");
  }
  FOLIOT_ASSIGN_OR_RETURN(const Function function, decode_function(from.function()));
  return PostOperation{.kind = static_cast<PostOperation::Kind>(from.kind()),
                       .function = function,
                       .alpha = from.alpha(),
                       .beta = from.beta(),
                       .input = from.input()};
}

void encode(const Operator& from, package::Operator* to) {
  to->set_kind(std::string(to_string(from.kind)));
  to->set_name(from.name);
  for (TensorIndex input : from.inputs) to->add_inputs(encode_index(input));
  for (TensorIndex output : from.outputs) to->add_outputs(encode_index(output));
  for (const auto& [name, value] : from.attributes.values()) {
    package::Attribute* attribute = to->add_attributes();
    attribute->set_name(name);
    std::visit(AttributeEncoder{attribute}, value);
  }
  for (const PostOperation& operation : from.post_operations) encode(operation, to->add_post_operations());
  to->set_scratchpad(encode_index(from.scratchpad));
  to->set_kernel(from.kernel);
}

Result<Operator> decode(const package::Operator& from) {
  Operator to;
  const auto kind = parse_operator_kind(from.kind());
  if (!kind) return Status::invalid_argument("unknown operator '" + from.kind() + "'");
  to.kind = *kind;
  to.name = from.name();
  for (uint32_t input : from.inputs()) to.inputs.push_back(decode_index(input));
  for (uint32_t output : from.outputs()) to.outputs.push_back(decode_index(output));
  for (const auto& attribute : from.attributes()) {
    FOLIOT_ASSIGN_OR_RETURN(Attribute value, decode(attribute));
    to.attributes.set(attribute.name(), std::move(value));
  }
  for (const auto& operation : from.post_operations()) {
    FOLIOT_ASSIGN_OR_RETURN(PostOperation decoded, decode(operation));
    to.post_operations.push_back(std::move(decoded));
  }
  to.scratchpad = decode_index(from.scratchpad());
  to.kernel = from.kernel();
  return to;
}

void encode(const Plan& from, package::Plan* to) {
  to->set_batch_size(from.batch_size);
  to->set_bucket(from.bucket);
  for (const Tensor& tensor : from.tensors) encode(tensor, to->add_tensors());
  for (const Operator& step : from.operators) encode(step, to->add_operators());
  encode_list(from.inputs, to->mutable_inputs());
  encode_list(from.outputs, to->mutable_outputs());
  to->set_workspace_bytes(from.workspace_bytes);
  to->set_input_bytes(from.input_bytes);
  to->set_output_bytes(from.output_bytes);
}

Result<Plan> decode(const package::Plan& from) {
  Plan to;
  to.batch_size = from.batch_size();
  if (from.bucket() > std::numeric_limits<uint16_t>::max()) return Status::invalid_argument("bucket out of range");
  to.bucket = static_cast<uint16_t>(from.bucket());
  for (const auto& tensor : from.tensors()) {
    FOLIOT_ASSIGN_OR_RETURN(Tensor decoded, decode(tensor));
    to.tensors.push_back(std::move(decoded));
  }
  for (const auto& step : from.operators()) {
    FOLIOT_ASSIGN_OR_RETURN(Operator decoded, decode(step));
    to.operators.push_back(std::move(decoded));
  }
  to.inputs = decode_list<TensorIndex>(from.inputs());
  to.outputs = decode_list<TensorIndex>(from.outputs());
  to.workspace_bytes = from.workspace_bytes();
  to.input_bytes = from.input_bytes();
  to.output_bytes = from.output_bytes();
  return to;
}

template <typename T, typename From>
Status decode_all(const From& from, std::vector<T>* to) {
  for (const auto& item : from) {
    FOLIOT_ASSIGN_OR_RETURN(T decoded, decode(item));
    to->push_back(std::move(decoded));
  }
  return {};
}

}  // namespace

std::string encode_metadata(const Program& program) {
  package::Program message;
  message.set_content_hash(program.content_hash);
  message.set_device_kind(program.device_kind);
  message.set_device_fingerprint(program.device_fingerprint);
  message.set_batching(program.batching);
  encode_list(program.batch_sizes, message.mutable_batch_sizes());
  for (const TensorSpec& spec : program.inputs) encode(spec, message.add_inputs());
  for (const TensorSpec& spec : program.outputs) encode(spec, message.add_outputs());
  for (const ProgramBucket& bucket : program.buckets) encode(bucket, message.add_buckets());
  for (const Plan& plan : program.plans) encode(plan, message.add_plans());
  message.set_page_bytes(program.page_bytes);
  message.set_weights_bytes(program.weights_bytes);
  message.set_seed_load_nanoseconds(program.seed_load.nanoseconds());
  for (const std::string& note : program.notes) message.add_notes(note);
  encode_list(program.operator_ends, message.mutable_operator_ends());

  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  FOLIOT_CHECK(message.SerializeToCodedStream(&coded));
  coded.Trim();
  return bytes;
}

Result<Program> decode_metadata(std::span<const std::byte> bytes) {
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return Status::invalid_argument("the metadata is too large");
  }
  package::Program message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Status::invalid_argument("the metadata cannot be parsed");
  }
  Program program;
  program.content_hash = message.content_hash();
  program.device_kind = message.device_kind();
  program.device_fingerprint = message.device_fingerprint();
  program.batching = message.batching();
  program.batch_sizes = decode_list<uint32_t>(message.batch_sizes());
  FOLIOT_RETURN_IF_ERROR(decode_all(message.inputs(), &program.inputs));
  FOLIOT_RETURN_IF_ERROR(decode_all(message.outputs(), &program.outputs));
  for (const auto& bucket : message.buckets()) program.buckets.push_back(decode(bucket));
  FOLIOT_RETURN_IF_ERROR(decode_all(message.plans(), &program.plans));
  program.page_bytes = message.page_bytes();
  program.weights_bytes = message.weights_bytes();
  program.seed_load = Duration::nanoseconds(message.seed_load_nanoseconds());
  program.notes.assign(message.notes().begin(), message.notes().end());
  program.operator_ends = decode_list<double>(message.operator_ends());
  FOLIOT_RETURN_IF_ERROR(check_program(program));
  return program;
}

}  // namespace foliot
