#include "control/controller/action_table.h"

#include <gtest/gtest.h>

#include <set>

namespace foliot {
namespace {

Action action(uint64_t id, uint32_t rows) {
  Action result{.id = ActionId(id), .batch_size = rows};
  for (uint32_t i = 0; i < rows; ++i) result.rows.add({RequestId(100 * id + i), PayloadHandle(i)});
  return result;
}

TEST(ActionTableTest, GivesBackWhatWasAdded) {
  ActionTable table;
  table.add(action(1, 3));
  const Action taken = table.take(ActionId(1));
  EXPECT_EQ(taken.batch_size, 3u);
  ASSERT_EQ(taken.rows.size(), 3u);
  EXPECT_EQ(taken.rows[2].request, RequestId(102));
  EXPECT_EQ(table.find(ActionId(1)), nullptr);
  EXPECT_EQ(table.size(), 0u);
}

// What is outstanding stays where it is while others come and go.
TEST(ActionTableTest, KeepsPlacesUntilTaken) {
  ActionTable table;
  const Action* first = &table.add(action(1, 1));
  for (uint64_t id = 2; id < 1000; ++id) table.add(action(id, 2));
  for (uint64_t id = 2; id < 900; ++id) table.take(ActionId(id));
  for (uint64_t id = 1000; id < 1500; ++id) table.add(action(id, 5));
  EXPECT_EQ(table.find(ActionId(1)), first);
  EXPECT_EQ(first->rows.size(), 1u);
  std::set<ActionId> left;
  table.for_each([&](const Action& each) { left.insert(each.id); });
  EXPECT_EQ(left.size(), table.size());
  EXPECT_EQ(left.size(), 1u + 100 + 500);
  EXPECT_FALSE(left.contains(ActionId(899)));
}

}  // namespace
}  // namespace foliot
