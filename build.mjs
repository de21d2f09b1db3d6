/**
 * The build: one thin entry with a chunk per command, the library, and the renderer, which runs in a process of its
 * own. Only the two native packages stay outside; all else is bundled, since loading packages file by file costs more than
 * running them, and what is bundled need not be installed. Silent, and quick enough for `prepare`.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const root = fileURLToPath(new URL('.', import.meta.url))

// Installed as a package, with `dist` in it, there is nothing to build and nothing to build it with.
if (!existsSync(join(root, 'src'))) process.exit(0)

const [{ rolldown }, { Ajv }, { default: standalone }, { figuresAtBuild }] = await Promise.all([
  import('rolldown'),
  import('ajv'),
  import('ajv/dist/standalone/index.js'),
  import('./src/preview/cast/figures.mjs'),
])
const standaloneCode = standalone.default ?? standalone

/** Scripts that the captions know (src/preview/lettering/font.ts). */
const FONT_SUBSETS = ['latin', 'latin-ext', 'cyrillic', 'cyrillic-ext', 'greek', 'greek-ext', 'vietnamese']

const origins = new Set()

const EXTERNAL = [/^node:/, /^@libsql\//, 'sharp']

/**
 * The packs: a chunk is in the first that may have all of its modules. What is large and needed by some commands alone stays
 * a file of its own, since the first start of all reads whole packs.
 */
const PACKS = {
  core: [
    /node_modules[\\/](commander|leven)|rolldown[\\/]runtime|package\.json|src[\\/](errors|protocol|client|cli)\b/,
    /src[\\/](host[\\/](clock|http|retry|backoff|directories|paths)|limiter[\\/](index|window|memory|ledger)|download[\\/](target|placeholders)|service[\\/]models)\.ts/,
  ],
  state: [/node_modules[\\/]libsql|src[\\/](journal|limiter|host|cli)\b/],
  network: [/node_modules[\\/]undici|src[\\/]host\b/],
  download: [/src[\\/](download|host)\b/],
  kinds: [
    /node_modules[\\/](file-type|strtok3|token-types|uint8array-extras|@tokenizer|@borewit|debug|ms)[\\/]/,
  ],
}
/** In the place of the build until that is known. */
const NO_BUILD = '0'.repeat(12)

// Beside the old one and then in its place: whoever starts the program meanwhile finds a whole one.
const fresh = join(root, `dist.${process.pid}`)
mkdirSync(fresh, { recursive: true })
try {
  // On its own, in one file: of what it shared with the others it would have to be given a chunk, before it can load any.
  const [start] = await write({ rushes: 'src/cli/process/start.ts' }, 'cjs', ['./edge.js'])
  // The program as CommonJS: Node reads it in half the time that its ESM loader takes, chunk by chunk.
  pack(start, await write({ edge: 'src/cli/process/edge.ts', renderer: 'src/preview/renderer.ts' }, 'cjs'))
  await write({ index: 'src/index.ts' }, 'esm')
  copyParts(join(fresh, 'parts'))
  writeFileSync(join(fresh, 'third-party-licenses.txt'), licenses())
  declareTypes(fresh)
  rmSync(join(root, 'dist'), { recursive: true, force: true })
  renameSync(fresh, join(root, 'dist'))
} finally {
  rmSync(fresh, { recursive: true, force: true })
}

async function write(input, format, others = []) {
  const plugins = [
    compiledSchemas(),
    lightCommander(),
    lightUndici(),
    lightLibsql(),
    textFiles(),
    figuresAtBuild(),
  ]
  const bundle = await rolldown({
    cwd: root,
    input,
    plugins,
    platform: 'node',
    external: [...EXTERNAL, ...others],
    logLevel: 'warn',
  })
  const extension = format === 'cjs' ? 'cjs' : 'js'
  const { output } = await bundle.write({
    dir: fresh,
    format,
    entryFileNames: `[name].${extension}`,
    chunkFileNames: `[name]-[hash].${extension}`,
    sourcemap: false,
    // Names stay, so that a stack trace says something.
    minify: {
      compress: { keepNames: { function: true, class: true } },
      mangle: { keepNames: { function: true, class: true } },
      codegen: { removeWhitespace: true },
    },
  })
  await bundle.close()
  for (const { moduleIds = [] } of output) for (const id of moduleIds) noteOrigin(id)
  return output
}

/** Puts chunks into packs (src/cli/process/packs.ts), and has all that need one of them, `start` the first, ask for it there. */
function pack(start, output) {
  const packed = new Map()
  for (const { fileName, name: entry, moduleIds } of output) {
    const holds = (name) => moduleIds.every((id) => PACKS[name].some((may) => may.test(id)))
    const name = entry === 'renderer' ? undefined : Object.keys(PACKS).find(holds)
    if (name !== undefined) packed.set(fileName, name)
  }
  const asking = (code, ask) =>
    code.replace(/\brequire\((["'`])\.\/([^"'`]+)\1\)/g, (whole, _, fileName) =>
      packed.has(fileName) ? `${ask}("${packed.get(fileName)}-${NO_BUILD}.cjs","${fileName}")` : whole,
    )
  const texts = Object.keys(PACKS).map((name) => {
    const held = output.filter(({ fileName }) => packed.get(fileName) === name)
    const chunks = held.map(
      ({ fileName, code }) => `"${fileName}":function(module,exports){${asking(code, '__part')}\n}`,
    )
    const text = `const{part:__part}=require("./${start.fileName}");module.exports={${chunks.join(',\n')}}\n`
    return [name, ascii(selfContained(text))]
  })
  // What is kept of a pack is found by its name: it is another one after every change, of whichever pack or of what keeps it.
  const hash = createHash('sha256').update(start.code)
  for (const [, text] of texts) hash.update(text)
  const build = hash.digest('hex').slice(0, NO_BUILD.length)
  const writeNamed = (fileName, text) =>
    writeFileSync(join(fresh, fileName), text.replaceAll(`-${NO_BUILD}.cjs`, `-${build}.cjs`))
  for (const [name, text] of texts) writeNamed(`${name}-${build}.cjs`, text)
  for (const { fileName, code } of output)
    if (packed.has(fileName)) rmSync(join(fresh, fileName))
    else writeNamed(fileName, asking(code, `require("./${start.fileName}").part`))
  const required = start.code.replace(
    /\bimport\(`\.\/edge\.js`\)/,
    'Promise.resolve().then(()=>require("./edge.cjs"))',
  )
  if (required === start.code) throw new Error('the start loads the rest in another way by now')
  writeNamed(start.fileName, asking(required, 'part'))
}

/**
 * A pack has `module` and `require` and nothing else that Node gives to a file, and what was kept of it cannot import. What a
 * dynamic import of Node's own modules gives, `require` has.
 */
function selfContained(text) {
  const required = text.replace(/\bimport\(([`'"]node:[\w/]+[`'"])\)/g, 'Promise.resolve(require($1))')
  const [found] = /\bimport\s*\(|\bimport\.meta|\b__(file|dir)name\b|\brequire\.\w+/.exec(required) ?? []
  if (found !== undefined) throw new Error(`a pack has no ${found}`)
  return required
}

/** Text that V8 need not decode: a letter takes one byte, in the file as in memory. */
function ascii(text) {
  if (text.includes('String.raw')) throw new Error('String.raw would show what is escaped here')
  const escaped = (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`
  return text.replace(/[^\x00-\x7f]/g, escaped)
}

/** Packages whose code or files are in `dist`, by their folders. */
function noteOrigin(path) {
  const [folder] = /^.*[\\/]node_modules[\\/](@[^\\/]+[\\/])?[^\\/]+/.exec(path) ?? []
  if (folder !== undefined) origins.add(folder)
}

/** What the renderer reads as files: the letters of its captions, and the encoder, which runs in a thread of its own. */
function copyParts(folder) {
  const { resolve } = createRequire(import.meta.url)
  const fonts = FONT_SUBSETS.flatMap((subset) =>
    [500, 600].map((weight) => `inter-${subset}-${weight}-normal.woff`),
  )
  const parts = [
    ...fonts.map((name) => [name, resolve(`@fontsource/inter/files/${name}`)]),
    ['h264-mp4-encoder.cjs', resolve('h264-mp4-encoder')],
  ]
  mkdirSync(folder)
  for (const [name, path] of parts) {
    copyFileSync(path, join(folder, name))
    noteOrigin(path)
  }
}

/** The words under which they may be passed on. */
function licenses() {
  const texts = [...origins].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    const files = readdirSync(folder).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file))
    const words = files.map((file) => readFileSync(join(folder, file), 'utf8').trim())
    return [`${name} ${version} (${license})`, ...words].join('\n\n')
  })
  return `${texts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`
}

/** Ajv's code for the model schemas in place of `protocol/validators.ts`, which would compile them at every start. */
function compiledSchemas() {
  return {
    name: 'compiled-schemas',
    load: {
      filter: { id: /protocol[\\/]validators\.ts$/ },
      async handler(id) {
        const bundle = await rolldown({ cwd: root, input: id, platform: 'node', external: ['ajv'] })
        const { output } = await bundle.generate({ format: 'esm' })
        await bundle.close()
        const file = join(fresh, 'schemas.mjs')
        writeFileSync(file, output[0].code)
        const { AJV_OPTIONS, VALIDATORS } = await import(pathToFileURL(file).href)
        rmSync(file)
        const ajv = new Ajv({ ...AJV_OPTIONS, code: { source: true, esm: true } })
        const kinds = Object.entries(VALIDATORS)
        for (const [kind, { schema }] of kinds) ajv.addSchema(schema, kind)
        const code = standaloneCode(ajv, Object.fromEntries(kinds.map(([kind]) => [kind, kind])))
        const names = kinds.map(([kind]) => kind).join(', ')
        return { code: `${code}\nexport const VALIDATORS = { ${names} }\n`, moduleType: 'js' }
      },
    },
  }
}

/** commander loads `child_process` for subcommands that are programs of their own; there are none here. */
function lightCommander() {
  const wanted = "const childProcess = require('node:child_process');"
  return {
    name: 'light-commander',
    transform: {
      filter: { id: /commander[\\/]lib[\\/]command\.js$/ },
      handler(code) {
        if (!code.includes(wanted)) throw new Error('commander loads child_process in another way by now')
        return code.replace(wanted, 'const childProcess = {};')
      },
    },
  }
}

/**
 * undici loads HTTP/2 whether it is used or not, and for forms all of `fetch`; neither is asked of it here. Of Node's HTTP it
 * wants a limit and the class of messages that are sent on, of `assert` that it throws: both take longer to load than undici.
 * Of its parser's tables it reads two, and making all of them takes as long as all else of it.
 */
function lightUndici() {
  const replaced = {
    "require('node:http')": `{ IncomingMessage: class {}, maxHeaderSize: 16384 }`,
    "require('node:assert')": `(value, message = 'undici found itself in a wrong state') => {
      if (!value) throw message instanceof Error ? message : new Error(message)
    }`,
  }
  return {
    name: 'light-undici',
    load: {
      filter: {
        id: /undici[\\/]lib[\\/](dispatcher[\\/]client-h2|web[\\/]fetch[\\/]body|llhttp[\\/]constants)\.js$/,
      },
      handler(id) {
        const { TYPE, ERROR } = id.endsWith('constants.js') ? createRequire(import.meta.url)(id) : {}
        const code = TYPE
          ? `module.exports = ${JSON.stringify({ TYPE, ERROR })}`
          : `module.exports = function () { throw new Error('not in this build: ${basename(id)}') }`
        return { code, moduleType: 'js' }
      },
    },
    transform: {
      filter: { id: /undici[\\/]lib[\\/]/, code: /require\('node:(http|assert)'\)/ },
      handler(code) {
        if (/\bassert\.\w|\bhttp\.(?!maxHeaderSize)|\bconstants\.(?!TYPE\b|ERROR\b|js\b)/.test(code))
          throw new Error('undici wants more of assert, http or its constants by now')
        return Object.entries(replaced).reduce((text, [wanted, given]) => text.replace(wanted, given), code)
      },
    },
  }
}

/**
 * libsql has Node write a report of the whole process to learn which C library there is. npm installs the binary for that
 * library alone, so the one that can be loaded is the one.
 */
function lightLibsql() {
  const wanted = /function requireNative\(\) \{.*?\n\}\n/s
  const code = `function requireNative() {
  const { platform, arch } = process
  const endings = { win32: ['-msvc'], linux: arch === 'arm' ? ['-gnueabihf', '-musleabihf'] : ['-gnu', '-musl'] }
  let failure
  for (const ending of endings[platform] ?? ['']) {
    try {
      return require('@libsql/' + platform + '-' + arch + ending)
    } catch (error) {
      failure ??= error
    }
  }
  throw failure
}
`
  return {
    name: 'light-libsql',
    transform: {
      filter: { id: /node_modules[\\/]libsql[\\/]index\.js$/ },
      handler(text) {
        if (!wanted.test(text)) throw new Error('libsql finds its binary in another way by now')
        return text
          .replace(wanted, code)
          .replace('const { load, currentTarget } = require("@neon-rs/load");', '')
          .replace('const { familySync, GLIBC, MUSL } = require("detect-libc");', '')
      },
    },
  }
}

/** `import text from './name.sh?raw'`, as vitest has it. */
function textFiles() {
  return {
    name: 'text-files',
    resolveId: (id, importer) => (id.endsWith('?raw') ? join(dirname(importer), id) : null),
    load: (id) =>
      id.endsWith('?raw')
        ? {
            code: `export default ${JSON.stringify(readFileSync(id.slice(0, -4), 'utf8'))}`,
            moduleType: 'js',
          }
        : null,
  }
}

function declareTypes(folder) {
  const tsc = createRequire(import.meta.url)
    .resolve('typescript/package.json')
    .replace(/package\.json$/, 'bin/tsc')
  execFileSync(process.execPath, [tsc, '-p', 'tsconfig.build.json', '--outDir', join(folder, 'types')], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  keepReached(join(folder, 'types'))
}

/** Of the types only those that the library's own lead to. */
function keepReached(folder) {
  const reached = new Set()
  const visit = (path) => {
    if (reached.has(path)) return
    reached.add(path)
    for (const [, name] of readFileSync(path, 'utf8').matchAll(/(?:from |import\()['"](\.[^'"]+)\.js['"]/g))
      visit(join(dirname(path), `${name}.d.ts`))
  }
  visit(join(folder, 'index.d.ts'))
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile() && !reached.has(path)) rmSync(path)
  }
}
