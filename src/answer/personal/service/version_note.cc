#include "answer/personal/service/version_note.h"

#include <fmt/format.h>

#include <fstream>
#include <system_error>

#include "answer/personal/service/personal_file.h"

namespace foliot {
namespace {

Status replace_file(const std::filesystem::path& file, const std::filesystem::path& partial, const std::string& text) {
  std::ofstream out(partial, std::ios::trunc);
  out << text;
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(partial, file, error);
  if (out && !error) return Status();
  return Status::internal(fmt::format("{} cannot be written: {}; make its folder writable, with space on its disk",
                                      file.string(), error ? error.message() : "the disk is full, or refuses"));
}

}  // namespace

std::optional<VersionNote> read_note(const std::filesystem::path& file) {
  std::ifstream in(file);
  VersionNote note;
  if (!std::getline(in, note.served) || !version_number(note.served)) return std::nullopt;
  std::getline(in, note.before);
  if (!version_number(note.before)) note.before.clear();
  return note;
}

std::optional<TakenVersion> read_taken(const std::filesystem::path& file) {
  std::ifstream in(file);
  TakenVersion choice;
  const bool is_whole = std::getline(in, choice.version) && std::getline(in, choice.newest);
  if (!is_whole || !version_number(choice.version) || !version_number(choice.newest)) return std::nullopt;
  std::getline(in, choice.before);
  if (!version_number(choice.before)) choice.before.clear();
  return choice;
}

Result<std::filesystem::path> served_version(const std::filesystem::path& folder, const std::filesystem::path& state) {
  const std::optional<VersionNote> note = read_note(state / kServedFile);
  std::error_code ignored;
  if (note && std::filesystem::is_directory(folder / note->served, ignored)) return folder / note->served;
  return newest_version(folder);
}

Status write(const VersionNote& note, const std::filesystem::path& file, const std::filesystem::path& partial) {
  return replace_file(file, partial, fmt::format("{}\n{}\n", note.served, note.before));
}

Status write(const TakenVersion& choice, const std::filesystem::path& file, const std::filesystem::path& partial) {
  return replace_file(file, partial, fmt::format("{}\n{}\n{}\n", choice.version, choice.newest, choice.before));
}

}  // namespace foliot
