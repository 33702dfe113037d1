// Records of the log of a personal model, and pieces of its snapshots, as bytes.
#ifndef FOLIOT_ANSWER_PERSONAL_STORAGE_USER_RECORDS_H_
#define FOLIOT_ANSWER_PERSONAL_STORAGE_USER_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "answer/personal/items/known_items.h"
#include "answer/personal/weights/observation_table.h"
#include "foundation/core/user_digest.h"

namespace foliot {

// Observations of a user; none: it is to be forgotten, here.
struct UserRecord {
  uint64_t user = 0;
  // Of a copy: that the observations belong to, also if there are none; nullopt: the one that the user has.
  std::optional<uint64_t> generation{};
  std::vector<UserObservation> observations{};
  std::vector<KnownItem> items{};  // of these, what is to be known of items where features are computed
};

std::vector<std::byte> encode_record(uint64_t user, std::span<const UserObservation> observations,
                                     std::span<const KnownItem> items = {});
// One record of a log holds at most so many observations, of one generation of a user.
inline constexpr size_t kObservationsPerCopy = 16'384;
std::vector<std::byte> encode_copy(uint64_t user, uint64_t generation, std::span<const UserObservation> observations);
UserDigest digest_of(uint64_t user, uint64_t generation, std::span<const UserObservation> observations);
// nullopt: it is no such record.
std::optional<UserRecord> decode_record(std::span<const std::byte> record);

// An item as a snapshot holds it.
void encode_item(const KnownItem& item, std::vector<std::byte>& piece);
// nullopt: the piece is no item.
std::optional<KnownItem> decode_item(std::span<const std::byte> piece);

// A user as a snapshot holds it.
void encode_user(const ObservationTable::User& user, std::vector<std::byte>& piece);
// nullopt: the piece is no user.
std::optional<ObservationTable::User> decode_user(std::span<const std::byte> piece);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_STORAGE_USER_RECORDS_H_
