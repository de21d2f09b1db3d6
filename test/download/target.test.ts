import { describe, expect, it } from 'vitest'
import { Namer, parseTarget, type Target } from '../../src/download/file-names.js'

const options = { download: false, isFolder: (path: string) => path === 'clips' || path === '.' }

describe('where outputs go', () => {
  it.each([
    [undefined, undefined],
    ['-', { kind: 'stdout' }],
    ['clips', { kind: 'folder', folder: 'clips' }],
    ['.', { kind: 'folder', folder: '.' }],
    ['new/', { kind: 'folder', folder: 'new/' }],
    ['..', { kind: 'folder', folder: '..' }],
    ['{kind}/', { kind: 'folder', folder: '{kind}/' }],
    ['fox', { kind: 'template', template: 'fox' }],
    ['fox.', { kind: 'template', template: 'fox.' }],
    ['clips/{id}-{index}.{ext}', { kind: 'template', template: 'clips/{id}-{index}.{ext}' }],
    // Braces without a word in them are text.
    ['{}', { kind: 'template', template: '{}' }],
    ['{a,b}.png', { kind: 'template', template: '{a,b}.png' }],
  ])('-o %j', (given, target) => {
    expect(parseTarget(given, options)).toEqual(target)
  })

  it('is the current folder with -d alone, and follows -o when both are given', () => {
    expect(parseTarget(undefined, { ...options, download: true })).toEqual({ kind: 'folder', folder: '.' })
    expect(parseTarget('fox', { ...options, download: true })).toEqual({ kind: 'template', template: 'fox' })
  })

  it.each([
    ['{indx}.png', '{indx}', 'Did you mean {index}?'],
    ['{ id }.png', '{ id }', 'Did you mean {id}?'],
    ['{index:03}.png', '{index:03}', 'Did you mean {index}?'],
    ['{prompt}/', '{prompt}', '{id} {index} {kind} {name} {ext}'],
  ])('-o %j is a usage error', (given, named, hint) => {
    expect(() => parseTarget(given, options)).toThrow(
      expect.objectContaining({
        code: 'usage',
        message: expect.stringContaining(named),
        hint: expect.stringContaining(hint),
      }),
    )
  })

  it.each(['', 'a\0b'])('-o %j is a usage error', (given) => {
    expect(() => parseTarget(given, options)).toThrow(expect.objectContaining({ code: 'usage' }))
  })
})

describe('on Windows', () => {
  const windows = { download: false, isFolder: () => false, separator: '\\' } as const

  it.each([
    ['clips\\', { kind: 'folder', folder: 'clips\\' }],
    ['C:\\clips\\', { kind: 'folder', folder: 'C:\\clips\\' }],
    ['C:\\clips\\fox.png', { kind: 'template', template: 'C:\\clips\\fox.png' }],
    ['a\\{name}.{ext}', { kind: 'template', template: 'a\\{name}.{ext}' }],
  ])('-o %j', (given, target) => {
    expect(parseTarget(given, windows)).toEqual(target)
  })

  it.each<[Target, readonly string[]]>([
    [{ kind: 'folder', folder: 'C:\\clips\\' }, ['C:\\clips\\CON-1.{ext}', 'C:\\clips\\CON-2.{ext}']],
    [{ kind: 'folder', folder: 'C:\\clips' }, ['C:\\clips/CON-1.{ext}', 'C:\\clips/CON-2.{ext}']],
    // The drive stays, and what a server says becomes one name: no further folder, stream or device.
    [{ kind: 'template', template: 'C:\\a.b\\{name}' }, ['C:\\a.b\\_nul', 'C:\\a.b\\x_.._y_z']],
    [{ kind: 'template', template: '{name}\\{id}' }, ['_nul\\_CON', 'x_.._y_z\\_CON']],
    [{ kind: 'template', template: 'a.b\\fox' }, ['a.b\\fox', 'a.b\\fox-2']],
  ])('%j', (target, names) => {
    const subjects = [
      { runId: 'CON', kind: 'image', name: 'nul. .' },
      { runId: 'CON', kind: 'image', name: 'x\\..\\y:z' },
    ]
    const given = new Namer(target, '\\').name(subjects)
    expect(given).toEqual(names)
  })
})
