//! Outcomes for machines: JUnit's XML, and JSON.

use serde_json::{Value, json};

use super::suite::{Outcome, Verdict};

/// The outcomes as JUnit XML, one test suite (the schema of Apache Ant's `junitreport`).
pub fn junit(outcomes: &[Outcome]) -> String {
    let count = |wanted: fn(&Verdict) -> bool| {
        let outcomes = outcomes.iter();
        outcomes.filter(|outcome| wanted(&outcome.verdict)).count()
    };
    let failures = count(|verdict| matches!(verdict, Verdict::Failed(_)));
    let errors = count(|verdict| matches!(verdict, Verdict::Broken(_)));
    let seconds: f64 = outcomes
        .iter()
        .map(|outcome| outcome.time.as_secs_f64())
        .sum();
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite \
         name=\"wormcast-stf\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" \
         time=\"{seconds:.3}\">\n",
        outcomes.len(),
    );
    for outcome in outcomes {
        let name = escape(&outcome.case.name);
        let time = outcome.time.as_secs_f64();
        xml.push_str(&format!(
            "    <testcase classname=\"stf\" name=\"{name}\" time=\"{time:.3}\""
        ));
        let kind = match outcome.verdict {
            Verdict::Passed(_) => "",
            Verdict::Failed(_) => "failure",
            Verdict::Broken(_) => "error",
        };
        match outcome.problem() {
            None => xml.push_str("/>\n"),
            Some(problem) => xml.push_str(&format!(
                ">\n      <{kind} message=\"{}\"/>\n    </testcase>\n",
                escape(&problem)
            )),
        }
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

/// The outcomes as an object: `passed`, `failed`, and `cases`.
pub fn summary_json(outcomes: &[Outcome]) -> Value {
    let cases = outcomes.iter().map(|outcome| {
        let (packets, checks) = match &outcome.verdict {
            Verdict::Passed(passed) => (Some(passed.packets), Some(passed.checks)),
            _ => (None, None),
        };
        let (verdict, line) = match &outcome.verdict {
            Verdict::Passed(_) => ("passed", None),
            Verdict::Failed(failure) => ("failed", failure.line),
            Verdict::Broken(_) => ("broken", None),
        };
        json!({
            "name": outcome.case.name,
            "program": outcome.case.program.display().to_string(),
            "script": outcome.case.script.display().to_string(),
            "verdict": verdict,
            "line": line,
            "problem": outcome.problem(),
            "packets": packets,
            "checks": checks,
            "seconds": outcome.time.as_secs_f64(),
        })
    });
    let passed = outcomes.iter().filter(|outcome| outcome.passed()).count();
    json!({
        "passed": passed,
        "failed": outcomes.len() - passed,
        "cases": cases.collect::<Vec<Value>>(),
    })
}

/// For an attribute; characters that XML 1.0 does not have become U+FFFD.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            character if character < ' ' => escaped.push('\u{fffd}'),
            character => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Case, Failure, Passed};

    fn outcomes() -> Vec<Outcome> {
        let outcome = |name: &str, verdict| Outcome {
            case: Case {
                name: name.to_owned(),
                program: format!("{name}.json").into(),
                script: format!("{name}.stf").into(),
            },
            verdict,
            time: Duration::from_millis(1500),
            trace: String::new(),
        };
        let passed = Passed {
            packets: 2,
            checks: 3,
        };
        let failure = Failure {
            line: Some(7),
            message: "0 < 1 & \"so on\"".to_owned(),
        };
        vec![
            outcome("a", Verdict::Passed(passed)),
            outcome("b", Verdict::Failed(failure)),
            outcome("c", Verdict::Broken("no\nfile\u{1}".to_owned())),
        ]
    }

    #[test]
    fn xml() {
        let expected = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  \
            <testsuite name=\"wormcast-stf\" tests=\"3\" failures=\"1\" errors=\"1\" \
            time=\"4.500\">\n    \
            <testcase classname=\"stf\" name=\"a\" time=\"1.500\"/>\n    \
            <testcase classname=\"stf\" name=\"b\" time=\"1.500\">\n      \
            <failure message=\"b.stf:7: 0 &lt; 1 &amp; &quot;so on&quot;\"/>\n    </testcase>\n    \
            <testcase classname=\"stf\" name=\"c\" time=\"1.500\">\n      \
            <error message=\"no&#10;file\u{fffd}\"/>\n    </testcase>\n  \
            </testsuite>\n</testsuites>\n";
        assert_eq!(junit(&outcomes()), expected);
    }

    #[test]
    fn json_says_the_same() {
        let json = summary_json(&outcomes());
        assert_eq!((&json["passed"], &json["failed"]), (&json!(1), &json!(2)));
        assert_eq!(json["cases"][0]["checks"], json!(3));
        assert_eq!(json["cases"][1]["line"], json!(7));
        assert_eq!(json["cases"][2]["verdict"], json!("broken"));
    }
}
