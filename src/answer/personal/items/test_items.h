// For tests: a folder of their own, and tables of items with drawn features.
#ifndef FOLIOT_ANSWER_PERSONAL_ITEMS_TEST_ITEMS_H_
#define FOLIOT_ANSWER_PERSONAL_ITEMS_TEST_ITEMS_H_

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <vector>

#include "answer/personal/items/item_table.h"
#include "foundation/base/random.h"

namespace foliot {

class TestFolder {
 public:
  // Processes of tests run at the same time.
  explicit TestFolder(const char* name)
      : path(std::filesystem::temp_directory_path() / fmt::format("foliot_{}_{}", name, ::getpid())) {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  ~TestFolder() { std::filesystem::remove_all(path); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  const std::filesystem::path path;
};

// Items 0, 10, 20 ...
inline std::shared_ptr<const ItemTable> drawn_items(const std::filesystem::path& folder, size_t features,
                                                    size_t count) {
  Random random(count);
  std::vector<uint64_t> items(count);
  std::vector<float> rows(count * features);
  for (size_t i = 0; i < count; ++i) items[i] = 10 * i;
  for (float& value : rows) value = static_cast<float>(random.normal() / std::sqrt(static_cast<double>(features)));
  FOLIOT_CHECK(ItemTable::write(folder / "items", features, items, rows).ok());
  return ItemTable::open(folder / "items").value();
}

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_ITEMS_TEST_ITEMS_H_
