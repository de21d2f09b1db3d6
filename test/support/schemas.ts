/** Real output against the published schemas, which are closed here: a key that they do not name is a fault. */
import { Ajv, type ValidateFunction } from 'ajv'
import { expect } from 'vitest'
import { commandWord, wantsJson } from '../../src/cli/flags/globals.js'
import { PUBLISHED, type PublishedName } from '../../src/cli/schemas/index.js'

const ajv = new Ajv({ strict: false, allErrors: true })
const validators = new Map<PublishedName, ValidateFunction>()

/** With no further keys, where keys are named. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema !== 'object' || schema === null) return schema
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]))
  const isObject = [inner.type].flat().includes('object') && Object.keys(inner.properties ?? {}).length > 0
  return isObject && inner.additionalProperties === undefined
    ? { ...inner, additionalProperties: false }
    : inner
}

/** Differences of a value from a schema; empty when it fits. */
export function misfits(name: PublishedName, value: unknown): readonly string[] {
  let validate = validators.get(name)
  if (validate === undefined) {
    const { schema } = PUBLISHED.find((each) => each.name === name) ?? {}
    // The manifest's schema closes its own objects.
    validate = ajv.compile((name === 'manifest' ? schema : closed(schema)) as object)
    validators.set(name, validate)
  }
  if (validate(value)) return []
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${name}${instancePath} ${message} ${JSON.stringify(params)}`,
  )
}

/** Expects a value to fit, and not to fit without a required key or with a further one. */
export function expectToFit(name: PublishedName, value: unknown): void {
  expect(misfits(name, value)).toEqual([])
  const { schema } = PUBLISHED.find((each) => each.name === name) ?? {}
  const { required = [] } = schema as { readonly required?: readonly string[] }
  for (const key of required) {
    const { [key]: _, ...others } = value as Record<string, unknown>
    expect(misfits(name, others), `without ${key}`).not.toEqual([])
  }
  // A manifest may have further keys.
  if (typeof value === 'object' && name !== 'manifest')
    expect(misfits(name, { ...value, further: 1 })).not.toEqual([])
}

const nameOfSpoken = (value: object): PublishedName | undefined =>
  (['error', 'warning', 'debug'] as const).find((name) => name in value)

/** The schema of a line on standard output, by the words that led to it. */
export function nameOfAnswer(argv: readonly string[], value: unknown): PublishedName | undefined {
  const words = argv.filter((word) => !word.startsWith('-'))
  const isPlan = argv.includes('--check') || argv.includes('--dry-run')
  const isSummary = typeof value === 'object' && value !== null && 'summary' in value
  switch (commandWord(argv)) {
    case 'run':
      return isPlan ? 'dry-run' : 'run'
    case 'wait':
    case 'status':
    case 'download':
      return 'run'
    case 'list':
      return 'list'
    case 'gallery':
      return 'gallery'
    case 'show':
      return 'show'
    case 'batch':
      return `batch${isPlan ? '-plan' : isSummary ? '' : '-row'}${isSummary ? '-summary' : ''}` as PublishedName
    case 'models':
      return words.length > 1 ? 'model' : 'models'
    case 'doctor':
      return 'doctor'
    case 'serve':
      return 'serve'
    case 'forget':
      return 'forget'
    case 'admin':
      if (words[1] === 'backup' || words[1] === 'verify' || words[1] === 'migrate') return `admin-${words[1]}`
      if (words[1] === 'key')
        return words[2] === 'create' || words[2] === 'rotate' ? 'admin-new-key' : 'admin-key'
      if (words[1] === 'user')
        return words[2] === 'add' || words[2] === 'link' ? 'admin-user-link' : 'admin-user'
      return words[1] === 'credits' && words[2] === 'list' ? 'admin-credits' : 'admin-account'
    case 'config':
      return `config-${words[1]}` as PublishedName
    default:
      return undefined
  }
}

const linesOf = (text: string): readonly string[] => text.split('\n').filter((line) => line !== '')

interface Printed {
  readonly stdout: string
  readonly stderr: string
}

/** The lines that a command printed with `--json` and that no schema allows, or that are not JSON. */
export function misfitsOf(argv: readonly string[], { stdout, stderr }: Printed): readonly string[] {
  if (
    !wantsJson(argv) ||
    argv[0] === '__complete' ||
    argv.some((word) => /^(-h|--help|-V|--version|help)$/.test(word))
  )
    return []
  const check = (line: string, nameOf: (value: unknown) => PublishedName | undefined): readonly string[] => {
    try {
      const value: unknown = JSON.parse(line)
      const name = nameOf(value)
      return name === undefined ? [`no schema is for ${line}`] : misfits(name, value)
    } catch {
      return [`no JSON: ${line}`]
    }
  }
  return [
    ...linesOf(stderr).flatMap((line) => check(line, (value) => nameOfSpoken(Object(value)))),
    ...linesOf(stdout).flatMap((line) => check(line, (value) => nameOfAnswer(argv, value))),
  ]
}
