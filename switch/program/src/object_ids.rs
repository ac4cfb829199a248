//! Ids that the JSON gives objects, by which BMv2's interfaces name some of them.

use std::collections::BTreeMap;

use super::description::DigestId;
use super::program::Program;

/// The JSON of a program, read for the ids of its objects.
pub struct ObjectIds(serde_json::Value);

impl ObjectIds {
    /// Those of a list (`counter_arrays`, say), by name. `tables` and `action_profiles` are
    /// those of all pipelines.
    pub fn by_name(&self, list: &str) -> BTreeMap<String, i64> {
        let places = self.pipelines().chain([&self.0]);
        ids_by_name(places.flat_map(|place| named_objects(place, list)))
    }

    /// Those of a list of one pipeline (`conditionals` of `ingress`, say), by name.
    pub fn of_pipeline(&self, pipeline: &str, list: &str) -> BTreeMap<String, i64> {
        let named = self
            .pipelines()
            .filter(|place| place["name"].as_str() == Some(pipeline));
        ids_by_name(named.flat_map(|place| named_objects(place, list)))
    }

    /// Those of a list that is not one of the pipelines, in its order; actions can have one
    /// name.
    pub fn in_order(&self, list: &str) -> Vec<i64> {
        named_objects(&self.0, list).map(|(_, id)| id).collect()
    }

    fn pipelines(&self) -> impl Iterator<Item = &serde_json::Value> {
        self.0["pipelines"].as_array().into_iter().flatten()
    }
}

impl Program {
    /// Ids of its objects in the JSON, for who wants those of several lists.
    pub fn ids(&self) -> ObjectIds {
        // The text was read as JSON before; what else is in it is passed over.
        ObjectIds(serde_json::from_str(&self.text).unwrap_or_default())
    }

    /// Ids of the objects of a list of the JSON (`counter_arrays`, say), by name. `tables`
    /// and `action_profiles` are those of all pipelines.
    pub fn object_ids(&self, list: &str) -> BTreeMap<String, i64> {
        self.ids().by_name(list)
    }

    /// Ids of the lists of digests (learning lists) in the JSON.
    pub fn digest_list_ids(&self) -> impl Iterator<Item = u16> + '_ {
        let ids = self.digest_lists.keys();
        // Reading a program bounds them.
        ids.filter_map(|id| u16::try_from(*id).ok())
    }

    /// Id of the list of a digest in the JSON.
    pub fn digest_list_id(&self, digest: DigestId) -> Option<u16> {
        let mut lists = self.digest_lists.iter();
        let (id, _) = lists.find(|(_, (of, _))| *of == digest)?;
        u16::try_from(*id).ok()
    }
}

fn named_objects<'v>(
    place: &'v serde_json::Value,
    list: &str,
) -> impl Iterator<Item = (&'v str, i64)> {
    let objects = place[list].as_array().into_iter().flatten();
    objects.filter_map(|object| Some((object["name"].as_str()?, object["id"].as_i64()?)))
}

fn ids_by_name<'v>(objects: impl Iterator<Item = (&'v str, i64)>) -> BTreeMap<String, i64> {
    let mut ids = BTreeMap::new();
    for (name, id) in objects {
        // p4c makes a learning list for each call of `digest`, and those of one struct have
        // one name; BMv2 finds the first.
        ids.entry(name.to_owned()).or_insert(id);
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(program: &Program, list: &str) -> Vec<(String, i64)> {
        program.object_ids(list).into_iter().collect()
    }

    #[test]
    fn objects_of_the_program_and_of_its_pipelines() {
        let text = include_str!("../../tests/programs/externs.json");
        let program = Program::from_json(text).unwrap();
        let named = |name: &str, id| (name.to_owned(), id);
        assert_eq!(ids(&program, "learn_lists"), [named("digest_t", 1)]);
        assert_eq!(ids(&program, "nothing"), []);
        let tables = program.object_ids("tables");
        for table in program.tables() {
            assert!(tables.contains_key(&table.name), "{}", table.name);
        }
        let mut numbers: Vec<i64> = tables.values().copied().collect();
        numbers.dedup();
        assert_eq!(numbers.len(), program.tables().len());
    }

    #[test]
    fn lists_of_digests() {
        let text = include_str!("../../tests/programs/externs.json");
        let program = Program::from_json(text).unwrap();
        assert_eq!(program.digest_list_ids().collect::<Vec<_>>(), [1]);
        let digest = program.digests_named("digest_t").next().unwrap();
        assert_eq!(program.digest_list_id(digest), Some(1));
    }
}
