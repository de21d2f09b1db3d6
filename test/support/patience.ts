/** How long a test waits for what may never come. Guards against hanging alone: a slow machine must not reach it. */
export const PATIENCE_MS = 120_000
