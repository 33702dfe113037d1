// ForeignSettings: what a file of another server's beside a model says of it, in Foliot's terms.
//
// Each field that has no meaning here, or another one, is a note. Nothing here looks at the model itself.
#ifndef FOLIOT_MODELS_FOREIGN_FOREIGN_SETTINGS_H_
#define FOLIOT_MODELS_FOREIGN_FOREIGN_SETTINGS_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/compiler/declared_tensor.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/version_table.h"

namespace foliot {

// A value, and the field that has it: "config.pbtxt:3: max_batch_size".
template <typename T>
struct Said {
  T value{};
  std::string where;
};

struct ForeignSettings {
  std::string file;  // its name, "config.pbtxt" or "model-settings.json"; empty: there is none
  // As in model.toml.
  std::optional<Said<std::string>> name;
  std::optional<Said<Duration>> default_slo;
  std::optional<Said<Duration>> batch_delay;
  std::optional<Said<std::vector<uint32_t>>> batch_sizes;
  std::optional<Said<bool>> cache;

  // The module of MLServer's runtime that reads the model, such as mlserver_sklearn; empty: none is named.
  std::string runtime;
  std::string predict_fn;  // of scikit-learn's: the method that answers a call which names no output; empty: predict
  std::string model_file;  // in the folder of the model or its version; empty: the usual ones
  std::optional<Said<VersionChoice>> versions;
  std::string version;  // of a model that lies beside the file; empty: as without it
  std::vector<DeclaredTensor> tensors;
  std::string otherwise;           // "; ..." behind the error if there is no model that can be served; may be empty
  std::vector<std::string> notes;  // at most kForeignNotesMax, a sentence each
};

inline constexpr size_t kForeignBytesMax = 64 << 10;  // of a file
inline constexpr size_t kForeignNotesMax = 16;

// The file of settings in this folder of a model; empty: there is none. Errors: kInvalidArgument for one that cannot be
// looked at.
Result<std::filesystem::path> find_foreign_settings(const std::filesystem::path& folder);

// Whether a file of this name is one of those.
bool is_foreign_settings(std::string_view file_name);

// What it says. `folder_name`: of the model's folder. Blocks on files. Errors: kInvalidArgument naming file and, where
// there is one, line, for what cannot be read or served; kUnimplemented for models of other frameworks, with what to
// do.
Result<ForeignSettings> read_foreign_settings(const std::filesystem::path& file, const std::string& folder_name);

// Adds the note, unless there are kForeignNotesMax: the last one counts the others.
class ForeignNotes {
 public:
  explicit ForeignNotes(std::vector<std::string>& to) : to_(to) {}
  ~ForeignNotes();
  ForeignNotes(const ForeignNotes&) = delete;
  ForeignNotes& operator=(const ForeignNotes&) = delete;

  void add(std::string note);
  // Further ones are only counted, whatever they say.
  bool is_full() const { return to_.size() + 1 >= kForeignNotesMax; }

 private:
  std::vector<std::string>& to_;
  size_t left_out_ = 0;
};

// What of it model.toml can say: a line each, with the field as a comment. `is_container`: a container has no batch
// sizes but a largest one.
std::vector<std::string> model_toml_lines(const ForeignSettings& settings, bool is_container);

// The sizes to compile for batches of up to `max`: powers of two, and `max` itself. REQUIRES: max >= 1.
std::vector<uint32_t> batch_sizes_up_to(uint32_t max);

}  // namespace foliot

#endif  // FOLIOT_MODELS_FOREIGN_FOREIGN_SETTINGS_H_
