// TomlReader: reads one table of a TOML file, key by key, into existing values: a key
// that is absent leaves its default. The first error is kept and returned by finish(),
// with file, line and key; what is read after it does not count. A key that was never
// asked for is an error too.
//
//   TomlReader reader(table, file);
//   reader.positive("rate", options.rate);
//   reader.duration("start", options.start);
//   FOLIOT_RETURN_IF_ERROR(reader.finish());
//
// Threading: one owner. The table outlives the reader.
#ifndef FOLIOT_FOUNDATION_CONFIG_TOML_READER_H_
#define FOLIOT_FOUNDATION_CONFIG_TOML_READER_H_

#include <toml++/toml.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

class TomlReader {
 public:
  // `file` is what errors call it.
  TomlReader(const toml::table& table, std::string file) : table_(&table), file_(std::move(file)) {}

  const std::string& file() const { return file_; }
  // "file:line" of the table, for errors of it as a whole.
  std::string where() const;
  bool has(std::string_view key) const { return table_->contains(key); }
  bool is_table(std::string_view key) const { return has(key) && table_->get(key)->is_table(); }
  bool is_text(std::string_view key) const { return has(key) && table_->get(key)->is_string(); }
  bool ok() const { return status_.ok(); }

  std::vector<std::string> keys() const;  // that the table has

  // Not empty.
  void text(std::string_view key, std::string& to);
  void text(std::string_view key, std::optional<std::string>& to);
  void any_text(std::string_view key, std::string& to);  // which may be empty
  // A text, or a list of them.
  void texts(std::string_view key, std::vector<std::string>& to);
  void flag(std::string_view key, bool& to);
  void number(std::string_view key, double& to);
  void not_negative(std::string_view key, double& to);
  void positive(std::string_view key, double& to);
  // In [0, 1].
  void share(std::string_view key, double& to);
  void whole(std::string_view key, uint64_t& to, uint64_t min = 0, uint64_t max = std::numeric_limits<int64_t>::max());
  void whole(std::string_view key, uint32_t& to, uint32_t min = 0, uint32_t max = std::numeric_limits<uint32_t>::max());
  void whole(std::string_view key, std::optional<uint32_t>& to, uint32_t min, uint32_t max);
  // Of whole numbers from 1 on, in ascending order.
  void ascending(std::string_view key, std::vector<uint32_t>& to, uint32_t max = std::numeric_limits<uint32_t>::max());
  // Of whole numbers up to `max`.
  void wholes(std::string_view key, std::vector<uint32_t>& to, uint32_t max);
  // Of numbers from 0 on, of which one is above.
  void weights(std::string_view key, std::vector<double>& to);
  // In quotes, with a unit.
  void duration(std::string_view key, Duration& to);
  void duration(std::string_view key, std::optional<Duration>& to);
  // Or "auto", which is nullopt.
  void duration_or_auto(std::string_view key, std::optional<Duration>& to);
  void positive(std::string_view key, Duration& to);
  void positive(std::string_view key, std::optional<Duration>& to);
  void durations(std::string_view key, std::vector<Duration>& to);
  void bytes(std::string_view key, uint64_t& to);
  void bytes(std::string_view key, std::optional<uint64_t>& to);

  // [key]; nullopt if absent. Its errors are its own: finish() it too.
  std::optional<TomlReader> table(std::string_view key);
  // [[key]]; empty if absent.
  std::vector<TomlReader> tables(std::string_view key);

  // The key is known, and another reader's to read.
  void leave(std::string_view key) { known_.emplace(key); }

  // Records that the value of `key`, or the table itself, is wrong.
  void fail(std::string_view key, std::string_view message);
  void fail(std::string_view message);
  // The same with the value, where there is one.
  void fail_value(std::string_view key, std::string_view must);

  Status finish();

 private:
  // Notes that the key is known. nullptr if absent, or something was wrong before.
  const toml::node* take(std::string_view key);
  void fail_at(const toml::source_region& where, std::string_view message);
  std::optional<double> real(std::string_view key);

  const toml::table* table_;
  std::string file_;
  std::set<std::string, std::less<>> known_;
  Status status_;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CONFIG_TOML_READER_H_
