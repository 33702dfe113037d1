#include "foundation/base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <fstream>
#include <random>
#include <vector>

#include "foundation/base/check.h"

namespace foliot {
namespace {

std::string hex(XXH128_hash_t hash) { return fmt::format("{:016x}{:016x}", hash.high64, hash.low64); }

}  // namespace

std::string hash_hex(std::span<const std::byte> bytes) { return hex(XXH3_128bits(bytes.data(), bytes.size())); }

uint64_t hash64(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

struct StreamHash::State {
  State() : xxh(XXH3_createState()) { FOLIOT_CHECK(xxh != nullptr && XXH3_128bits_reset(xxh) == XXH_OK); }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  XXH3_state_t* xxh;
};

HashSecret::HashSecret() {
  static_assert(sizeof words_ >= XXH3_SECRET_SIZE_MIN);
  std::random_device random;
  for (uint32_t& word : words_) word = random();
}

StreamHash::StreamHash() : state_(std::make_unique<State>()) {}
StreamHash::StreamHash(const HashSecret& secret) : StreamHash() {
  FOLIOT_CHECK(XXH3_128bits_reset_withSecret(state_->xxh, secret.words_.data(), sizeof secret.words_) == XXH_OK);
}
StreamHash::~StreamHash() = default;

void StreamHash::update(std::span<const std::byte> bytes) {
  FOLIOT_CHECK(XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size()) == XXH_OK);
}

Status StreamHash::update_from(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::vector<char> chunk(1 << 20);
  while (stream) {
    stream.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    update(std::as_bytes(std::span(chunk)).first(static_cast<size_t>(stream.gcount())));
  }
  return stream.eof() ? Status() : Status::internal(fmt::format("cannot read {}", file.string()));
}

uint64_t StreamHash::digest64() const { return XXH3_128bits_digest(state_->xxh).low64; }
Hash128 StreamHash::digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh);
  return {hash.high64, hash.low64};
}
std::string StreamHash::digest_hex() const { return hex(XXH3_128bits_digest(state_->xxh)); }

}  // namespace foliot
