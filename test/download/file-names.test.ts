import { posix } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Target } from '../../src/download/file-names.js'
import {
  knownPaths,
  Namer,
  type OutputToName,
  parseTarget,
  withExtension,
} from '../../src/download/file-names.js'
import { safeName, safePart } from '../../src/protocol/output-names.js'
import { anyCharacter } from '../support/any-character.js'
import { expectLinear } from '../support/growth.js'

const run = (runId: string, more: Partial<OutputToName> = {}): OutputToName => ({
  runId,
  kind: 'video',
  ...more,
})

const OPTIONS = { download: false, isFolder: (path: string) => path === 'clips' || path === '.' }
const WINDOWS = { ...OPTIONS, separator: '\\' } as const

/** Where `-o` leads. */
const target = (given: string, options: Parameters<typeof parseTarget>[1] = OPTIONS) =>
  parseTarget(given, options) as Target

const named = (given: string, ...outputs: OutputToName[]) => new Namer(target(given)).name(outputs)

it.each([
  ['../../etc/passwd', '_.._etc_passwd'],
  ['-rf', 'rf'],
  ['.bashrc', 'bashrc'],
  ['x'.repeat(1_000), 'x'.repeat(100)],
])('the id %j is %j in a file name', (id, name) => {
  expect(safeName(id)).toBe(name)
})

it.each([
  ['Füchse 狐', 'Füchse 狐'],
  ['..', '_'],
  ['  -x. ', 'x'],
  ['a\u202eb\u200bc', 'a_b_c'],
  ['{ext}', '_ext_'],
  ['狐'.repeat(100), '狐'.repeat(33)],
  ['', '_'],
])('the name %j, which a person chose, is %j in a file name', (text, part) => {
  expect(safePart(text)).toBe(part)
})

it.each<[string, string, readonly OutputToName[], readonly string[]]>([
  ['use the id of each run', '.', [run('a'), run('b')], ['a.{ext}', 'b.{ext}']],
  [
    'count the outputs of a run that has several',
    '.',
    [run('a'), run('a'), run('b')],
    ['a-1.{ext}', 'a-2.{ext}', 'b.{ext}'],
  ],
  ['stand in a folder that exists', 'clips', [run('a')], ['clips/a.{ext}']],
  ['stand in a new folder', 'out/', [run('a')], ['out/a.{ext}']],
  ['stand in the root', '/', [run('a')], ['/a.{ext}']],
  ['stand in a folder with words', '{kind}/{index}/', [run('a')], ['video/1/a.{ext}']],
  [
    'stay apart when ids differ in nothing that a file name can hold',
    '.',
    [run('a/b'), run('a:b'), run('A_B')],
    ['a_b.{ext}', 'a_b-2.{ext}', 'A_B-3.{ext}'],
  ],
])('the names of -d %s', (_, given, outputs, names) => {
  expect(named(given, ...outputs)).toEqual(names)
})

describe('a template', () => {
  it.each([
    ['fox.png', ['fox.png', 'fox-2.png', 'fox-3.png']],
    ['.fox', ['.fox', '.fox-2', '.fox-3']],
    ['fox.{ext}', ['fox.{ext}', 'fox-2.{ext}', 'fox-3.{ext}']],
    ['fox-{index}.png', ['fox-1.png', 'fox-2.png', 'fox-3.png']],
    ['{id}/fox.png', ['a/fox.png', 'b/fox.png', 'c/fox.png']],
    ['{kind}-{id}.{ext}', ['video-a.{ext}', 'video-b.{ext}', 'video-c.{ext}']],
    ['{name}', ['a', 'b', 'c']],
  ])('%j names the outputs of three runs %j', (path, names) => {
    expect(named(path, run('a'), run('b'), run('c'))).toEqual(names)
  })

  it('gives no name twice, whichever came first', () => {
    const names = ['a', 'a', 'a-2', 'A', 'a-2']
    expect(named('{name}.png', ...names.map((name) => run('x', { name })))).toEqual([
      'a.png',
      'a-2.png',
      'a-2-2.png',
      'A-3.png',
      'a-2-3.png',
    ])
  })

  it('numbers ten thousand outputs of one name in linear time', async () => {
    await expectLinear(10_000, (count) => {
      const names = named('fox.png', ...Array<OutputToName>(count).fill(run('r')))
      expect(new Set(names).size).toBe(count)
      expect(names.at(-1)).toBe(`fox-${count}.png`)
    })
  })

  it('goes on counting over the calls of one command', () => {
    const namer = new Namer(target('{index}-fox.png'))
    const plain = new Namer(target('fox.png'))
    expect([namer.name([run('a'), run('a')]), namer.name([run('b')])]).toEqual([
      ['1-fox.png', '2-fox.png'],
      ['3-fox.png'],
    ])
    expect([plain.name([run('a')]), plain.name([run('b')])]).toEqual([['fox.png'], ['fox-2.png']])
  })

  it.each([
    ['{id}', 'CON', '_CON'],
    ['{id}.{ext}', 'nul', '_nul.{ext}'],
    ['{id}', 'console', 'console'],
    // What the user wrote is the user's.
    ['con/{id}', 'a', 'con/a'],
  ])('%j with the id %j is %j', (path, id, name) => {
    expect(named(path, run(id))).toEqual([name])
  })

  it('stays in its folder, whatever the server says', () => {
    const hostile = fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.constantFrom('..', '/etc/passwd', '\0', '{ext}', '{id}', '-rf', 'CON', ' ', '\u202e'),
      fc
        .array(fc.constantFrom('.', '/', '\\', '-', 'a', '\n', ':'), { maxLength: 200 })
        .map((all) => all.join('')),
    )
    const shape = fc.constantFrom('{id}', '{id}.{ext}', '{kind}/{name}', 'a{name}b', '{name}{id}{kind}.{ext}')
    fc.assert(
      fc.property(shape, hostile, hostile, hostile, hostile, (path, runId, kind, name, extension) => {
        const [given = ''] = named(`out/${path}`, { runId, kind, name })
        const full = withExtension(given, extension)
        expect(posix.normalize(full)).toBe(full)
        expect(full.split('/').length).toBe(`out/${path}`.split('/').length)
        for (const part of full.split('/')) {
          expect(part).not.toMatch(/^\.|^-|[\p{C}\\:]/u)
          expect(Buffer.byteLength(part)).toBeLessThanOrEqual(404)
        }
      }),
    )
  })
})

it.each<[string, number, readonly string[]]>([
  ['fox.png', 1, ['fox.png']],
  ['fox.png', 3, ['fox.png', 'fox-2.png', 'fox-3.png']],
  ['{kind}-{index}', 2, ['image-1', 'image-2']],
  ['{name}.png', 2, []],
  ['{id}.png', 2, []],
  ['fox.{ext}', 1, []],
  ['.', 1, []],
  ['-', 1, []],
])('the names of -o %s for %i runs are known before anything is paid for: %j', (given, count, paths) => {
  expect(knownPaths(target(given), count, 'image')).toEqual(paths)
})

describe('where outputs go', () => {
  it.each([
    [undefined, undefined],
    ['-', { kind: 'stdout' }],
    ['.', { kind: 'folder', folder: '.' }],
    ['new/', { kind: 'folder', folder: 'new/' }],
    ['{kind}/', { kind: 'folder', folder: '{kind}/' }],
    ['fox', { kind: 'template', template: 'fox' }],
    ['fox.', { kind: 'template', template: 'fox.' }],
    ['clips/{id}-{index}.{ext}', { kind: 'template', template: 'clips/{id}-{index}.{ext}' }],
    // Braces without a word in them are text.
    ['{}', { kind: 'template', template: '{}' }],
    ['{a,b}.png', { kind: 'template', template: '{a,b}.png' }],
  ])('-o %j', (given, expected) => {
    expect(parseTarget(given, OPTIONS)).toEqual(expected)
  })

  it('is the current folder with -d alone, and follows -o when both are given', () => {
    expect(parseTarget(undefined, { ...OPTIONS, download: true })).toEqual({ kind: 'folder', folder: '.' })
    expect(parseTarget('fox', { ...OPTIONS, download: true })).toEqual({ kind: 'template', template: 'fox' })
  })

  it.each([
    ['{indx}.png', '{indx}', 'Did you mean {index}?'],
    ['{prompt}/', '{prompt}', '{id} {index} {kind} {name} {ext}'],
  ])('-o %j is a usage error', (given, named, hint) => {
    expect(() => parseTarget(given, OPTIONS)).toThrow(
      expect.objectContaining({
        code: 'usage',
        message: expect.stringContaining(named),
        hint: expect.stringContaining(hint),
      }),
    )
  })

  it.each(['', 'a\0b'])('-o %j is a usage error', (given) => {
    expect(() => parseTarget(given, OPTIONS)).toThrow(expect.objectContaining({ code: 'usage' }))
  })
})

it.each([
  ['C:\\clips\\', { kind: 'folder', folder: 'C:\\clips\\' }],
  ['a\\{name}.{ext}', { kind: 'template', template: 'a\\{name}.{ext}' }],
])('on Windows -o %j', (given, expected) => {
  expect(target(given, WINDOWS)).toEqual(expected)
})

it.each<[Target, readonly string[]]>([
  [target('C:\\clips\\', WINDOWS), ['C:\\clips\\CON-1.{ext}', 'C:\\clips\\CON-2.{ext}']],
  [{ kind: 'folder', folder: 'C:\\clips' }, ['C:\\clips/CON-1.{ext}', 'C:\\clips/CON-2.{ext}']],
  // The drive stays, and what a server says becomes one name: no further folder, stream or device.
  [target('C:\\a.b\\{name}', WINDOWS), ['C:\\a.b\\_nul', 'C:\\a.b\\x_.._y_z']],
  [target('{name}\\{id}', WINDOWS), ['_nul\\_CON', 'x_.._y_z\\_CON']],
  [target('a.b\\fox', WINDOWS), ['a.b\\fox', 'a.b\\fox-2']],
])('on Windows %j names the outputs of a hostile server %j', (place, names) => {
  const outputs = ['nul. .', 'x\\..\\y:z'].map((name) => run('CON', { name }))
  expect(new Namer(place, '\\').name(outputs)).toEqual(names)
})
