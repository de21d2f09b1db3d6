/** For commander's `argParser`: collects the values of a repeatable flag. */
export const repeated = (value: string, before: readonly string[] = []): readonly string[] => [
  ...before,
  value,
]
