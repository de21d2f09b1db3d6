/** Reads the files of `deploy/` as values. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))
export const DEPLOY = `${ROOT}/deploy`

export const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0
if (!hasSystemd)
  console.log('systemd-analyze is not installed: the units of deploy/systemd are not verified.')

export const readDeploy = (name: string): string => readFileSync(`${DEPLOY}/${name}`, 'utf8')

export interface ComposeService {
  readonly image: string
  readonly command?: readonly string[]
  readonly entrypoint?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly ports?: readonly string[]
  readonly volumes?: readonly string[]
  readonly networks: Readonly<Record<string, { readonly ipv4_address?: string }>>
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
  readonly healthcheck?: { readonly test: readonly string[] }
  readonly stop_grace_period?: string
  readonly read_only?: boolean
  readonly cap_drop?: readonly string[]
  readonly cap_add?: readonly string[]
  readonly security_opt?: readonly string[]
  readonly user?: string
  readonly tmpfs?: readonly string[]
  readonly scale?: number
}

export interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>
  readonly networks: Readonly<Record<string, { readonly internal?: boolean } | null>>
  readonly volumes: Readonly<Record<string, unknown>>
  readonly configs: Readonly<Record<string, { readonly content: string }>>
}

/**
 * Returns the file with these variables filled in, like `docker compose config`. Throws if a variable without a default
 * is not set.
 */
export function readCompose(env: Readonly<Record<string, string>>): Compose {
  const text = readDeploy('compose.yaml').replace(
    /\$\{(\w+)(:-|:\?)([^}]*)\}/g,
    (_, name: string, operator: string, word: string) => {
      const value = env[name]
      if (value !== undefined && value !== '') return value
      if (operator === ':-') return word
      throw new Error(`${name}: ${word}`)
    },
  )
  return parse(text, { merge: true })
}

/** Returns the variables of a file with lines `NAME=value`. */
export const variablesIn = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries([...text.matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]))

export interface Instruction {
  readonly name: string
  readonly words: string
}

/** Returns the stages of the Dockerfile. Each starts with its FROM. Continued lines are joined. */
export function readDockerfile(): readonly (readonly Instruction[])[] {
  const stages: Instruction[][] = []
  const lines = readDeploy('Dockerfile')
    .replace(/^#.*\n/gm, '')
    .replace(/\\\n\s*/g, '')
    .split('\n')
  for (const line of lines) {
    const [, name, words = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? []
    if (name === undefined) continue
    if (name === 'FROM') stages.push([])
    stages.at(-1)?.push({ name, words })
  }
  return stages
}

/** Returns the arguments of the last instruction with this name in the final stage. */
export function finalInstruction(name: string): string {
  const found = readDockerfile()
    .at(-1)
    ?.findLast((instruction) => instruction.name === name)
  if (found === undefined) throw new Error(`The Dockerfile has no ${name}`)
  return found.words
}

/**
 * Returns the command of the health check, which is written as a list. `mainProcess`: a file that replaces
 * `/proc/1/cmdline`.
 */
export const healthCheck = (mainProcess: string): readonly string[] =>
  JSON.parse(finalInstruction('HEALTHCHECK').replace(/^.*?CMD /, '')).map((word: string) =>
    word.replace('/proc/1/cmdline', mainProcess),
  )

/** Returns the settings of a systemd unit, each with the values of all its lines. */
export function readUnit(name: string): ReadonlyMap<string, readonly string[]> {
  const settings = new Map<string, string[]>()
  for (const [, key = '', value = ''] of readDeploy(`systemd/${name}`).matchAll(/^(\w+)=(.*)$/gm))
    settings.set(key, [...(settings.get(key) ?? []), value])
  return settings
}

/**
 * Returns the words of `ExecStart` as systemd runs them: replaces specifiers and variables, and removes quotes.
 * Variables without a value in `vars` are removed.
 */
export function wordsOfUnit(
  line: string,
  vars: Readonly<Record<string, string>>,
  instance = '',
): readonly string[] {
  const words = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '')
  return words.flatMap((word) => {
    const [, name] = /^\$(\w+)$/.exec(word) ?? []
    if (name !== undefined) return (vars[name] ?? '').split(' ').filter((part) => part !== '')
    return [word.replaceAll('$$', '$').replaceAll('%i', instance)]
  })
}
