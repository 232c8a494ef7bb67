// SPDX-License-Identifier: BSD-3-Clause
//
// Categories: what groups the variables. They never change. Any thread.
//
//     canele ─┬▶ settings ──▶ settings_for_experts
//             └▶ counters ──▶ states
#include <string_view>
#include <vector>

#include "calls/tools.hpp"
#include "starpu_glue/mpi/tools/tool_state.hpp"
#include "starpu_glue/mpi/tools/variables.hpp"

namespace canele::mpi {
namespace {

enum class CategoryNumber : int { canele, settings, settings_for_experts, counters, states, count };

struct Category {
  std::string_view name, description;
  std::vector<int> inner;  ///< categories
};

constexpr int kCategories = static_cast<int>(CategoryNumber::count);

bool is_category(int index) { return index >= 0 && index < kCategories; }

Category category(int index) {
  const auto number = [](CategoryNumber one) { return static_cast<int>(one); };
  switch (static_cast<CategoryNumber>(index)) {
    case CategoryNumber::canele:
      return {
          "canele", "all variables of Canele", {number(CategoryNumber::settings), number(CategoryNumber::counters)}};
    case CategoryNumber::settings:
      return {"settings", "what a user can set", {number(CategoryNumber::settings_for_experts)}};
    case CategoryNumber::settings_for_experts:
      return {"settings_for_experts", "what only tuning and tests set", {}};
    case CategoryNumber::counters:
      return {"counters", "what the engine counts", {number(CategoryNumber::states)}};
    default:
      return {"states", "what is so now, and the largest so far", {}};
  }
}

/// Returns the control variables of a category.
std::vector<int> settings_of(int index) {
  const auto number = static_cast<CategoryNumber>(index);
  std::vector<int> found;
  if (number != CategoryNumber::settings && number != CategoryNumber::settings_for_experts) return found;
  for (int one = 0; one < tools::setting_count(); ++one) {
    if (tools::is_for_experts(one) == (number == CategoryNumber::settings_for_experts)) found.push_back(one);
  }
  return found;
}

/// Returns the performance variables of a category.
std::vector<int> counters_of(int index) {
  const auto number = static_cast<CategoryNumber>(index);
  std::vector<int> found;
  if (number != CategoryNumber::counters && number != CategoryNumber::states) return found;
  for (int one = 0; one < tools::counter_count(); ++one) {
    if (tools::is_continuous(one) == (number == CategoryNumber::states)) found.push_back(one);
  }
  return found;
}

/// Gives a tool the members of a category, as many as it has room for.
int give_members(int index, std::vector<int> (*members)(int), int length, int* indices) {
  if (!is_category(index)) return MPI_T_ERR_INVALID_INDEX;
  if (length < 0 || (length > 0 && indices == nullptr)) return MPI_T_ERR_INVALID;
  const std::vector<int> all = members(index);
  for (int i = 0; i < length && i < static_cast<int>(all.size()); ++i) indices[i] = all[static_cast<std::size_t>(i)];
  return MPI_SUCCESS;
}

int size_of(const std::vector<int>& list) { return static_cast<int>(list.size()); }

}  // namespace

namespace calls {

int t_category_get_num(int* num_cat) {
  if (num_cat == nullptr) return MPI_T_ERR_INVALID;
  *num_cat = kCategories;
  return MPI_SUCCESS;
}

int t_category_get_info(int cat_index, char* name, int* name_len, char* desc, int* desc_len, int* num_cvars,
                        int* num_pvars, int* num_categories) {
  if (!is_category(cat_index)) return MPI_T_ERR_INVALID_INDEX;
  const Category found = category(cat_index);
  tools::give_text(found.name, name, name_len);
  tools::give_text(found.description, desc, desc_len);
  tools::give(num_cvars, size_of(settings_of(cat_index)));
  tools::give(num_pvars, size_of(counters_of(cat_index)));
  tools::give(num_categories, size_of(found.inner));
  return MPI_SUCCESS;
}

int t_category_get_index(const char* name, int* cat_index) {
  if (name == nullptr || cat_index == nullptr) return MPI_T_ERR_INVALID;
  for (int index = 0; index < kCategories; ++index) {
    if (category(index).name != name) continue;
    *cat_index = index;
    return MPI_SUCCESS;
  }
  return MPI_T_ERR_INVALID_NAME;
}

int t_category_get_cvars(int cat_index, int len, int indices[]) {
  return give_members(cat_index, settings_of, len, indices);
}

int t_category_get_pvars(int cat_index, int len, int indices[]) {
  return give_members(cat_index, counters_of, len, indices);
}

int t_category_get_categories(int cat_index, int len, int indices[]) {
  return give_members(
      cat_index, [](int index) { return category(index).inner; }, len, indices);
}

int t_category_get_num_events(int cat_index, int* num_events) {
  if (!is_category(cat_index)) return MPI_T_ERR_INVALID_INDEX;
  if (num_events == nullptr) return MPI_T_ERR_INVALID;
  *num_events = 0;
  return MPI_SUCCESS;
}

int t_category_get_events(int cat_index, int len, int indices[]) {
  return give_members(
      cat_index, [](int) { return std::vector<int>(); }, len, indices);
}

int t_category_changed(int* update_number) {
  if (update_number == nullptr) return MPI_T_ERR_INVALID;
  *update_number = 0;
  return MPI_SUCCESS;
}

}  // namespace calls
}  // namespace canele::mpi
