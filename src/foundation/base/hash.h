// Content hashes: find what was compiled before, detect a corrupt file, identify the
// event log of a simulation. Not for secrets.
#ifndef FOLIOT_FOUNDATION_BASE_HASH_H_
#define FOLIOT_FOUNDATION_BASE_HASH_H_

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "foundation/base/status.h"

namespace foliot {

// 128 bits of XXH3 as 32 hexadecimal digits.
std::string hash_hex(std::span<const std::byte> bytes);
// 64 bits of XXH3.
uint64_t hash64(std::span<const std::byte> bytes);

struct Hash128 {
  uint64_t high = 0;
  uint64_t low = 0;

  auto operator<=>(const Hash128&) const = default;
};
// For tables: it is a hash already.
struct Hash128Hash {
  size_t operator()(const Hash128& hash) const { return hash.low; }
};

// Makes hashes different from those of any other secret: without knowing it, no client finds
// inputs with equal ones.
class HashSecret {
 public:
  // From the system's random numbers.
  HashSecret();

 private:
  friend class StreamHash;
  std::array<uint32_t, 48> words_;
};

// The same over bytes that come in pieces: equal streams give equal hashes,
// however they were cut.
class StreamHash {
 public:
  StreamHash();
  // The secret outlives it.
  explicit StreamHash(const HashSecret& secret);
  ~StreamHash();
  StreamHash(const StreamHash&) = delete;
  StreamHash& operator=(const StreamHash&) = delete;

  void update(std::span<const std::byte> bytes);
  // Errors: kInternal naming the file, if it cannot be read.
  Status update_from(const std::filesystem::path& file);
  uint64_t digest64() const;
  Hash128 digest() const;
  std::string digest_hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_BASE_HASH_H_
