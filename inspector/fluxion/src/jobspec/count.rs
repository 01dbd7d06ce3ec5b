//! How many of a resource: a set of numbers of which the largest available one is taken.

/// How one number of the set leads to the next.
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
    /// The smallest number; 0 can't be met.
    pub min: u32,
    /// No number is larger.
    pub max: u32,
    /// How the numbers follow each other.
    pub operator: Operator,
    /// What the operator takes.
    pub operand: u32,
}

impl Default for Count {
    fn default() -> Self {
        Self::exactly(1)
    }
}

impl Count {
    /// The set of one number.
    pub fn exactly(count: u32) -> Self {
        Self { min: count, max: count, operator: Operator::Add, operand: 1 }
    }

    /// At least so many, as many as there are.
    pub fn at_least(min: u32) -> Self {
        Self { min, max: u32::MAX, operator: Operator::Add, operand: 1 }
    }

    /// The largest number of the set that does not exceed what is available; 0 when there is none.
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
