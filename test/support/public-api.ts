/** The public API of the library, read from the packed types: each exported name with its declaration. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DIST } from './binary.js'

export interface Declared {
  readonly name: string
  readonly isType: boolean
  /** The declaration with its comment, as in the type files. */
  readonly text: string
}

const read = (path: string): string => readFileSync(join(DIST, 'types', path), 'utf8')

/** Returns the exported declarations in the order of their files. */
export function publicApi(): readonly Declared[] {
  const index = read('index.d.ts')
  const own = [...index.matchAll(/^export (?:declare )?(?:interface|type|function|const|class) (\w+)/gm)].map(
    ([, name = '']) => declared(name, 'index.d.ts'),
  )
  const others = [...index.matchAll(/^export (type )?\{([^}]*)\} from '\.\/(.*)\.js';$/gm)].flatMap(
    ([, , names = '', path = '']) =>
      names
        .split(',')
        .map((name) => name.trim().replace(/^type /, ''))
        .filter((name) => name !== '')
        .map((name) => declared(name, `${path}.d.ts`)),
  )
  return [...own, ...others]
}

function declared(name: string, path: string): Declared {
  const text = read(path)
  const found = new RegExp(
    `^((?:/\\*\\*(?:(?!\\*/)[\\s\\S])*\\*/\\n)?)export (?:declare )?(interface|type|function|const|class) ${name}\\b`,
    'm',
  ).exec(text)
  if (found !== null) {
    const [head, , word = ''] = found
    const end = endOf(text, found.index + head.length, word === 'interface' || word === 'class')
    return { name, isType: word === 'interface' || word === 'type', text: text.slice(found.index, end) }
  }
  const [, elsewhere] =
    new RegExp(`(?:import|export)[^;]*\\b${name}\\b[^;]* from '\\.?(/.*|\\.\\./.*)\\.js'`).exec(text) ?? []
  if (elsewhere === undefined) throw new Error(`no declaration of ${name} in ${path}`)
  return declared(name, join(dirname(path), `${elsewhere}.d.ts`))
}

/** Returns the offset after the `}` of a body, or after the `;` of a statement. */
function endOf(text: string, from: number, isBody: boolean): number {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    const character = text[at]
    if (character === '"' || character === "'") at = endOfText(text, at)
    else if (character === '{' || character === '(') depth++
    else if (character === '}' || character === ')') {
      depth--
      if (isBody && depth === 0 && character === '}') return at + 1
    } else if (character === ';' && depth === 0) return at + 1
    else if (text.startsWith('/*', at)) at = text.indexOf('*/', at) + 1
  }
  throw new Error('a declaration without an end')
}

function endOfText(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === text[from]) return at
  }
  return text.length
}

/** Returns the type names in a declaration: capitalized words outside of comments and strings. */
export const namesUsed = (text: string): readonly string[] => [
  ...new Set(
    text
      .replace(/\/\*[\s\S]*?\*\//g, '')
      .replace(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/g, '')
      .match(/(?<![\w.$])[A-Z]\w*\b(?!\??:)/g) ?? [],
  ),
]
