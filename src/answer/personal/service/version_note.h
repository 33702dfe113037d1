// VersionNote, TakenVersion: what is kept on disk of the versions of a personal model: a line for each member, in a
// file that is replaced as a whole.
//
// Threading: any. Two that write one file at a time must name different `partial` ones.
#ifndef FOLIOT_ANSWER_PERSONAL_SERVICE_VERSION_NOTE_H_
#define FOLIOT_ANSWER_PERSONAL_SERVICE_VERSION_NOTE_H_

#include <filesystem>
#include <optional>
#include <string>

#include "foundation/base/status.h"

namespace foliot {

// Beside the log: after a restart a newer version is compared with the served one, as while the server runs.
struct VersionNote {
  std::string served{};
  std::string before{};  // empty: none
};

// An operator took a version: of those up to the newest one of that time no other is taken by itself.
struct TakenVersion {
  std::string version{};
  std::string newest{};
  std::string before{};  // that a rollback takes; empty: none
};

// Names the file of a VersionNote, in the folder of the log.
inline constexpr const char* kServedFile = "served_version";

// nullopt: there is none, or it names no version.
std::optional<VersionNote> read_note(const std::filesystem::path& file);
std::optional<TakenVersion> read_taken(const std::filesystem::path& file);
// The version in `folder` that the server with the log in `state` serves, by its note; without one, the newest. Errors:
// kNotFound: there is none.
Result<std::filesystem::path> served_version(const std::filesystem::path& folder, const std::filesystem::path& state);
// By way of the file `partial` in the same folder. Errors: kInternal naming `file`.
Status write(const VersionNote& note, const std::filesystem::path& file, const std::filesystem::path& partial);
Status write(const TakenVersion& choice, const std::filesystem::path& file, const std::filesystem::path& partial);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_SERVICE_VERSION_NOTE_H_
