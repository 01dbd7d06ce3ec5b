//! Resource counts: a set of numbers, of which the largest available one is used.

/// How the next number of the set is calculated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operator {
    /// Add the operand.
    #[default]
    Add,
    /// Multiply by the operand.
    Multiply,
    /// Raise to the power of the operand.
    Power,
}

/// A set of counts, from `min` to `max` in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The minimum; 0 can't be satisfied.
    pub min: u32,
    /// The maximum.
    pub max: u32,
    /// Operator of the steps.
    pub operator: Operator,
    /// Operand of the steps.
    pub operand: u32,
}

impl Default for Count {
    fn default() -> Self {
        Self::exactly(1)
    }
}

impl Count {
    /// A fixed count.
    pub fn exactly(count: u32) -> Self {
        Self { min: count, max: count, operator: Operator::Add, operand: 1 }
    }

    /// At least this many, and as many as available.
    pub fn at_least(min: u32) -> Self {
        Self { min, max: u32::MAX, operator: Operator::Add, operand: 1 }
    }

    /// The largest number of the set that is available; 0 if there is none.
    pub fn take(&self, available: u64) -> u64 {
        let (min, max, operand) = (u64::from(self.min), u64::from(self.max), u64::from(self.operand));
        if min > max || min > available {
            return 0;
        }
        let bound = available.min(max);
        let step = |count: u64| match self.operator {
            Operator::Add => None,
            Operator::Multiply => count.checked_mul(operand),
            Operator::Power => count.checked_pow(self.operand),
        };
        if self.operator == Operator::Add {
            return bound - (bound - min) % operand.max(1);
        }
        let mut count = min;
        while let Some(next) = step(count).filter(|&next| next > count && next <= bound) {
            count = next;
        }
        count
    }

    /// The largest number of the set.
    pub fn largest(&self) -> u64 {
        self.take(u64::from(u32::MAX))
    }
}
