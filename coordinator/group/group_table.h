/// The groups of one partition by id. GroupMachine owns it; each kind of group has a class that works on its own
/// (ClassicGroups, ConsumerGroups) and shares this table with the others, since a group can change its kind.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "coordinator/group/group.h"

namespace tidemark::coordinator {

class GroupTable {
public:
    Group* find(const std::string& id) const {
        const auto found = groups_.find(id);
        return found == groups_.end() ? nullptr : found->second.get();
    }
    /// Null when there is no group, or one of another kind.
    template <class Kind>
    Kind* find_as(const std::string& id) const {
        return dynamic_cast<Kind*>(find(id));
    }
    /// Replaces a group of the same id.
    template <class Kind>
    Kind& put(std::unique_ptr<Kind> group) {
        auto& kept = *group;
        groups_[kept.id()] = std::move(group);
        return kept;
    }
    void erase(const std::string& id) { groups_.erase(id); }

    std::size_t size() const { return groups_.size(); }
    auto begin() const { return groups_.begin(); }
    auto end() const { return groups_.end(); }

private:
    std::unordered_map<std::string, std::unique_ptr<Group>> groups_;
};

}  // namespace tidemark::coordinator
