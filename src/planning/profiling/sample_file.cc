#include "planning/profiling/sample_file.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cluster/transport/wire.h"
#include "foundation/base/check.h"
#include "foundation/base/hash.h"

namespace foliot {
namespace {

constexpr uint64_t kSampleMagic = 0x31736c706d53466f;
constexpr uint32_t kSampleVersion = 1;

uint64_t hash_of(std::span<const std::byte> bytes) { return hash64(bytes); }

bool sound(const OverlapSample& sample) {
  if (sample.parts.size() < 2 || sample.parts.size() > OverlapPredictor::kModelsMax) return false;
  for (size_t i = 0; i < sample.parts.size(); ++i) {
    if (sample.parts[i].range.first >= sample.parts[i].range.last) return false;
    for (size_t j = 0; j < i; ++j) {
      if (sample.parts[i].model == sample.parts[j].model) return false;
    }
  }
  return sample.together > Duration() && std::isfinite(sample.spread) && sample.spread >= 0;
}

// Samples of one file, or none if it is not there.
Result<std::vector<OverlapSample>> read(Storage& storage, std::string_view name, const std::string& setting) {
  Result<std::vector<std::byte>> bytes = storage.read(name);
  if (bytes.ok()) return SampleFile::decode(*bytes, setting);
  if (bytes.status().code() == StatusCode::kNotFound) return std::vector<OverlapSample>();
  return bytes.status();
}

}  // namespace

std::vector<std::byte> SampleFile::encode_header(const std::string& setting) {
  WireBytes bytes;
  WireWriter writer(bytes);
  writer.put(kSampleMagic);
  writer.put(kSampleVersion);
  writer.put(hash64(std::as_bytes(std::span(setting))));
  writer.put(hash_of(bytes));
  return bytes;
}

std::vector<std::byte> SampleFile::encode(const OverlapSample& sample) {
  WireBytes bytes;
  WireWriter writer(bytes);
  writer.put(static_cast<uint32_t>(sample.parts.size()));
  for (const OverlapPredictor::Part& part : sample.parts) {
    writer.put(part.model);
    writer.put(part.bucket);
    writer.put(part.range.first);
    writer.put(part.range.last);
  }
  writer.put(sample.together);
  writer.put(sample.spread);
  writer.put(hash_of(bytes));
  return bytes;
}

std::vector<OverlapSample> SampleFile::decode(std::span<const std::byte> bytes, const std::string& setting) {
  const std::vector<std::byte> header = encode_header(setting);
  std::vector<OverlapSample> samples;
  if (bytes.size() < header.size() || !std::ranges::equal(bytes.first(header.size()), header)) return samples;
  bytes = bytes.subspan(header.size());
  while (!bytes.empty() && samples.size() < kSamplesMax) {
    WireReader reader(bytes);
    OverlapSample sample;
    const uint32_t parts = reader.get_count(4 * sizeof(uint32_t));
    for (uint32_t i = 0; i < parts && i < OverlapPredictor::kModelsMax; ++i) {
      OverlapPredictor::Part& part = sample.parts.emplace_back();
      reader.get(part.model);
      reader.get(part.bucket);
      reader.get(part.range.first);
      reader.get(part.range.last);
    }
    reader.get(sample.together);
    reader.get(sample.spread);
    const size_t hashed = bytes.size() - reader.left();
    uint64_t hash = 0;
    reader.get(hash);
    if (reader.failed() || hash != hash_of(bytes.first(hashed)) || !sound(sample)) break;
    bytes = bytes.last(reader.left());
    samples.push_back(std::move(sample));
  }
  return samples;
}

Result<SampleFile> SampleFile::open(Storage& storage, const std::string& setting) {
  SampleFile opened(storage);
  FOLIOT_ASSIGN_OR_RETURN(opened.samples_, read(storage, kSampleFileName, setting));
  FOLIOT_ASSIGN_OR_RETURN(std::vector<OverlapSample> newer, read(storage, kNewSampleFileName, setting));
  if (newer.size() > opened.samples_.size()) {
    opened.samples_ = std::move(newer);
    FOLIOT_RETURN_IF_ERROR(storage.sync(kNewSampleFileName));
    FOLIOT_RETURN_IF_ERROR(storage.rename(kNewSampleFileName, kSampleFileName));
  }
  opened.found_ = opened.samples_.size();
  FOLIOT_RETURN_IF_ERROR(opened.begin(setting));
  return opened;
}

Status SampleFile::begin(const std::string& setting) {
  FOLIOT_ASSIGN_OR_RETURN(file_, storage_->create(kNewSampleFileName));
  std::vector<std::byte> bytes = encode_header(setting);
  for (const OverlapSample& sample : samples_) {
    const std::vector<std::byte> one = encode(sample);
    bytes.insert(bytes.end(), one.begin(), one.end());
  }
  FOLIOT_RETURN_IF_ERROR(file_->append(bytes));
  return sync();
}

Status SampleFile::add(OverlapSample sample) {
  FOLIOT_CHECK(sound(sample));
  if (file_ == nullptr) return Status::internal("an earlier sample could not be written");
  if (samples_.size() == kSamplesMax) {
    return Status::resource_exhausted("there are as many samples as a file may hold; profile fewer models");
  }
  Status status = file_->append(encode(sample));
  if (!status.ok()) file_ = nullptr;  // it may hold a part of it
  if (status.ok()) samples_.push_back(std::move(sample));
  return status;
}

Status SampleFile::sync() {
  if (file_ == nullptr) return Status::internal("an earlier sample could not be written");
  Status status = file_->sync();
  if (!status.ok()) file_ = nullptr;
  return status;
}

}  // namespace foliot
