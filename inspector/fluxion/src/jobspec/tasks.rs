//! The tasks of a jobspec. Matching has no use for them; they are only checked.

use super::error::{JobspecError, refuse};
use super::yaml::Value;

pub(super) fn check(task: &Value) -> Result<(), JobspecError> {
    let Some(pairs) = task.mapping() else { return refuse("task is not a mapping") };
    let Some(command) = task.get("command") else { return refuse("Key \"command\" missing from task") };
    let Some(words) = command.sequence() else { return refuse("\"command\" value must be a sequence") };
    if words.iter().any(|word| word.scalar().is_none()) {
        return refuse("\"command\" value must be a sequence of scalars");
    }
    let Some(slot) = task.get("slot") else { return refuse("Key \"slot\" missing from task") };
    if slot.scalar().is_none() {
        return refuse("Value of task \"slot\" must be a YAML scalar");
    }
    if let Some(count) = task.get("count") {
        let Some(pairs) = count.mapping() else { return refuse("\"count\" in task is not a mapping") };
        let [(key, value)] = pairs else {
            return refuse("\"count\" in task must have exactly one entry");
        };
        if key.scalar().is_none() || value.scalar().is_none() {
            return refuse("\"count\" in task must map a scalar to a scalar");
        }
    }
    if task.get("distribution").is_some_and(|value| value.scalar().is_none()) {
        return refuse("Value of task \"distribution\" must be a YAML scalar");
    }
    if let Some(attributes) = task.get("attributes") {
        let Some(pairs) = attributes.mapping() else {
            return refuse("\"attributes\" in task is not a mapping");
        };
        if pairs.iter().any(|(_, value)| value.scalar().is_none()) {
            return refuse("\"attributes\" in task must be a mapping of scalars");
        }
    }
    if !(3..=5).contains(&pairs.len()) {
        return refuse("impossible number of entries in task mapping");
    }
    Ok(())
}
