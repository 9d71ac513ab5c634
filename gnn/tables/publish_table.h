#pragma once

#include <string>

#include "cache/tables/row_table.h"
#include "gnn/tables/table_job.h"
#include "rhizome/job_control.h"

namespace rhizome {
inline namespace internal {

/// Publishes the values of a table as a new array of the store, in the graph's order. The files are
/// first written below `scratch`. Memory: a chunk of the array, and a chunk of rows of the table.
/// Errors: kAlreadyExists, the store has an array of this name; errors of reading the table and of
/// PublishMade.
Status PublishTable(const TableJob& job, const Path& store, const std::string& name,
                    RowTable& table, const Path& scratch, const JobControl& control);

/// Errors: kAlreadyExists, as PublishTable; kInvalidArgument, a bad name.
Status CheckNewArray(const Store& store, const std::string& name);

}  // namespace internal
}  // namespace rhizome
