#pragma once

#include "rhizome/index/topology_check.h"
#include "rhizome/storage/store.h"
#include "rhizome/storage/verify.h"

namespace rhizome::inline internal {

/// Does the rest of VerifyGraph, after topology, order and ids were checked: checks the delta and
/// the arrays. Adds all findings to `report`.
Status VerifyOpened(const Store& store, const TopologyFindings& topology, const JobControl& control,
                    VerifyReport& report);

}  // namespace rhizome::inline internal
