/** Parses Prometheus text format. Throws for an invalid line. */

export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface Family {
  readonly type: string
  readonly help: string
  readonly samples: readonly Sample[]
}

const NAME = '[a-z][a-z0-9_]*'
const LABEL = `${NAME}="(?:[^"\\\\\\n]|\\\\[\\\\"n])*"`
const META = new RegExp(`^# (HELP|TYPE) (${NAME}) (.+)$`)
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(${LABEL}(?:,${LABEL})*)\\})? (-?[0-9.e+-]+|N[aA][nN]|[+-]Inf)$`)
const NUMBERS: Readonly<Record<string, number>> = {
  '+Inf': Infinity,
  '-Inf': -Infinity,
  NaN: Number.NaN,
  Nan: Number.NaN,
}

const labelsOf = (text = ''): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...text.matchAll(new RegExp(`(${NAME})="((?:[^"\\\\]|\\\\.)*)"`, 'g'))].map(([, name, value]) => [
      name,
      value,
    ]),
  )

/** Returns every metric of a scrape, by name. */
export function parseMetrics(text: string): ReadonlyMap<string, Family> {
  const families = new Map<string, { type: string; help: string; samples: Sample[] }>()
  let current = ''
  for (const line of text.split('\n')) {
    if (line === '') continue
    const [, kind, metric = '', words = ''] = META.exec(line) ?? []
    if (kind === 'HELP') {
      if (families.has(metric)) throw new Error(`twice: ${line}`)
      families.set(metric, { type: '', help: words, samples: [] })
      current = metric
      continue
    }
    const family = families.get(current)
    if (family === undefined) throw new Error(`before any HELP: ${line}`)
    if (kind === 'TYPE' && metric === current) {
      family.type = words
      continue
    }
    const [, name = '', labels, value = ''] = SAMPLE.exec(line) ?? []
    const suffixes = family.type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']
    if (!suffixes.some((suffix) => name === `${current}${suffix}`)) throw new Error(`not a sample: ${line}`)
    family.samples.push({ name, labels: labelsOf(labels), value: NUMBERS[value] ?? Number(value) })
  }
  return families
}

/** Returns the sum of the samples with these labels. 0 if there are none. */
export function sumOf(text: string, name: string, labels: Readonly<Record<string, string>> = {}): number {
  const family = name.replace(/_(bucket|sum|count)$/, '')
  const samples = parseMetrics(text).get(family) ?? parseMetrics(text).get(name)
  if (samples === undefined) throw new Error(`no metric ${name}`)
  const isWanted = (sample: Sample) =>
    sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value)
  return samples.samples.filter(isWanted).reduce((sum, { value }) => sum + value, 0)
}
