/**
 * Changes one place of the source at a time and runs the tests of its folder, which must fail:
 * `npm run bench -- mutants 60 [folder of src ...]`, with `--seed 2` for other places. Works on a copy of the project. A
 * change that the type checker refuses is replaced by another one.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { row } from './table.js'

/** The tests that must notice a change of a folder: those beside it, then those of the commands or the service that use it. */
const TESTS: Readonly<Record<string, readonly string[]>> = {
  'src/runs': ['test/runs', 'test/client', 'test/cli', 'test/batch'],
  'src/batch': ['test/batch', 'test/cli'],
  'src/journal': ['test/journal', 'test/cli'],
  'src/client': ['test/client', 'test/runs', 'test/cli', 'test/library.test.ts'],
  'src/service/worker': ['test/service/worker', 'test/service', 'test/simulation'],
  'src/service/store': ['test/service/store', 'test/service', 'test/simulation'],
  'src/service/engines/upstream': ['test/service/engines', 'test/service', 'test/simulation'],
  'src/service/rules': ['test/service/rules', 'test/service'],
}
const LIMIT_MS = 600_000
const OPPOSITE: Readonly<Record<string, string>> = {
  '<': '>=',
  '<=': '>',
  '>': '<=',
  '>=': '<',
  '===': '!==',
  '!==': '===',
  '&&': '||',
  '||': '&&',
  '+': '-',
  '-': '+',
}

interface Mutant {
  readonly file: string
  readonly start: number
  readonly end: number
  readonly text: string
}

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [key: string]: unknown
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string'

/** Random numbers from 0 to 1 that are the same for the same seed (mulberry32). */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** The opposite of an operator, a condition that is negated, and a call of a statement that is left out. */
function mutantsOf(file: string, source: string, program: Node): Mutant[] {
  const found: Mutant[] = []
  const visit = (node: Node): void => {
    const add = (at: Node, text: string) => found.push({ file, start: at.start, end: at.end, text })
    const textOf = (part: unknown) => (isNode(part) ? source.slice(part.start, part.end) : '')
    if (node.type.startsWith('TS') && node.type !== 'TSAsExpression') return
    const opposite = OPPOSITE[String(node.operator)]
    if ((node.type === 'BinaryExpression' || node.type === 'LogicalExpression') && opposite !== undefined)
      add(node, `(${textOf(node.left)}) ${opposite} (${textOf(node.right)})`)
    if ((node.type === 'IfStatement' || node.type === 'ConditionalExpression') && isNode(node.test))
      add(node.test, `!(${textOf(node.test)})`)
    if (node.type === 'ExpressionStatement' && isNode(node.expression)) {
      const { type } = node.expression
      if (type === 'CallExpression' || type === 'AwaitExpression') add(node, ';')
    }
    for (const value of Object.values(node))
      for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) visit(child)
  }
  visit(program)
  return found
}

const words = process.argv.slice(2)
const seedAt = words.indexOf('--seed')
const seed = seedAt < 0 ? 1 : Number(words.splice(seedAt, 2)[1])
const count = Number(words.shift() ?? 60)
const folders = words.length > 0 ? words : Object.keys(TESTS)

// By a name that the bundle of this benchmark does not follow.
const parser: string = 'rolldown/experimental'
const { parseSync } = await import(parser)
const copy = mkdtempSync(join(tmpdir(), 'rushes-mutants-'))
for (const name of readdirSync('.'))
  if (!['.git', 'node_modules'].includes(name)) cpSync(name, join(copy, name), { recursive: true })
symlinkSync(resolve('node_modules'), join(copy, 'node_modules'))

/** Exit code of a program in the copy; undefined after the time limit. */
function run(...args: readonly string[]): number | undefined {
  const { status } = spawnSync('npx', args, { cwd: copy, stdio: 'ignore', timeout: LIMIT_MS })
  return status ?? undefined
}

const random = createRandom(seed)
const verdicts = new Map<string, number>()
const passing = new Set<string>()
try {
  row('folder', 'place', 'change', 'first test folder that fails')
  row('---', '---', '---', '---')
  for (const [index, folder] of folders.entries()) {
    const places = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .sort()
      .flatMap((name) => {
        const source = readFileSync(join(folder, name), 'utf8')
        return mutantsOf(join(folder, name), source, parseSync(name, source).program)
      })
    for (const tests of TESTS[folder] ?? ['test']) {
      if (!passing.has(tests) && run('vitest', 'run', tests) !== 0)
        throw new Error(`${tests} fails without a change`)
      passing.add(tests)
    }
    let wanted =
      Math.floor((count * (index + 1)) / folders.length) - Math.floor((count * index) / folders.length)
    while (wanted > 0 && places.length > 0) {
      const mutant = places.splice(Math.floor(random() * places.length), 1)[0] as Mutant
      const source = readFileSync(mutant.file, 'utf8')
      const before = source.slice(mutant.start, mutant.end)
      writeFileSync(
        join(copy, mutant.file),
        source.slice(0, mutant.start) + mutant.text + source.slice(mutant.end),
      )
      if (run('tsc', '--noEmit') === 0) {
        wanted--
        const noticed = (TESTS[folder] ?? ['test']).find(
          (tests) => run('vitest', 'run', '--bail=1', tests) !== 0,
        )
        const verdict = noticed === undefined ? 'lives' : 'noticed'
        verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + 1)
        const line = source.slice(0, mutant.start).split('\n').length
        const shown = (text: string) => `\`${text.replace(/\s+/g, ' ').replaceAll('|', '\\|').slice(0, 60)}\``
        row(
          folder,
          `${mutant.file}:${line}`,
          `${shown(before)} → ${shown(mutant.text)}`,
          noticed ?? '**lives**',
        )
      }
      writeFileSync(join(copy, mutant.file), source)
    }
  }
} finally {
  rmSync(copy, { recursive: true })
}
console.log([...verdicts].map(([verdict, number]) => `${number} ${verdict}`).join(', '))
