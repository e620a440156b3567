//! A budget's TOML with some keys changed, as `--set` asks.

use toml::{Table, Value};

use super::error::Error;

/// Changes `key` to `value` (TOML, or a bare word). The key is a dotted path; members of `[[term]]` and `[[resource]]`
/// go by their name: "servos.count", "term.servo turn-around.jitter.normal.sd_us".
pub(super) fn change(table: &mut Table, key: &str, value: &str) -> Result<(), Error> {
    let wrong = |remedy: String| Error::Set { key: key.to_owned(), remedy };
    let parsed = toml::from_str::<Table>(&format!("v = {value}"))
        .ok()
        .and_then(|mut table| table.remove("v"))
        .unwrap_or_else(|| Value::String(value.to_owned()));
    let Some((first, rest)) = key.split_once('.') else {
        table.insert(key.to_owned(), parsed);
        return Ok(());
    };
    let entry = table.get_mut(first).ok_or_else(|| wrong(format!("the budget has no {first}")))?;
    let (mut within, mut path) = match entry {
        Value::Array(members) => {
            let there = names(members);
            member(members, rest).ok_or_else(|| {
                wrong(format!("no {first} is called so; write {first}.NAME.KEY with NAME one of {there}"))
            })?
        }
        other => (other, rest),
    };
    loop {
        let inner = within.as_table_mut().ok_or_else(|| wrong(format!("what comes before {path} has no keys")))?;
        match path.split_once('.') {
            None => {
                inner.insert(path.to_owned(), parsed);
                return Ok(());
            }
            Some((step, further)) => {
                within = inner.get_mut(step).ok_or_else(|| wrong(format!("there is no {step}")))?;
                path = further;
            }
        }
    }
}

/// The member whose name begins the path, and the path within it. Names may have dots.
fn member<'a, 'b>(members: &'a mut [Value], path: &'b str) -> Option<(&'a mut Value, &'b str)> {
    let within = |member: &Value| path.strip_prefix(member.get("name")?.as_str()?)?.strip_prefix('.');
    let at = members.iter().position(|member| within(member).is_some())?;
    let rest = within(&members[at])?;
    Some((&mut members[at], rest))
}

fn names(members: &[Value]) -> String {
    let quoted = |member: &Value| Some(format!("{:?}", member.get("name")?.as_str()?));
    members.iter().filter_map(quoted).collect::<Vec<_>>().join(", ")
}
