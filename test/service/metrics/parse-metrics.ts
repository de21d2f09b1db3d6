/** Reads Prometheus text format, as prom-client writes it. */

interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

interface Family {
  readonly type: string
  readonly help: string
  readonly samples: readonly Sample[]
}

const labelsOf = (text = ''): Readonly<Record<string, string>> =>
  Object.fromEntries([...text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name, value]) => [name, value]))

/** Returns every metric of a scrape, by name. */
export function parseMetrics(text: string): ReadonlyMap<string, Family> {
  const families = [...text.matchAll(/^# HELP (\w+) (.+)\n# TYPE \w+ (\w+)((?:\n[^#\n].*)*)/gm)]
  return new Map(
    families.map(([, metric = '', help = '', type = '', lines = '']) => {
      const samples = [...lines.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)].map(
        ([, name = '', labels, value]) => ({ name, labels: labelsOf(labels), value: Number(value) }),
      )
      return [metric, { type, help, samples }]
    }),
  )
}

/** Returns the sum of the samples with these labels. 0 if there are none. */
export function sumOf(text: string, name: string, labels: Readonly<Record<string, string>> = {}): number {
  const families = parseMetrics(text)
  const family = families.get(name) ?? families.get(name.replace(/_(bucket|sum|count)$/, ''))
  if (family === undefined) throw new Error(`no metric ${name}`)
  const isWanted = (sample: Sample) =>
    sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value)
  return family.samples.filter(isWanted).reduce((sum, { value }) => sum + value, 0)
}
