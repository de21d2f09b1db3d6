/**
 * Compiles compose.ts, and what it imports, with AssemblyScript and writes the module, as text, into ../kernel.ts:
 * `node src/preview/video/assembly/compile.mjs`. The text is kept in the repository, so that building the
 * program needs no compiler but its own; a test compiles it anew and compares where the compiler is installed.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const TARGET = new URL('../kernel.ts', import.meta.url)

const SOURCES = ['compose.ts', 'layer.ts', 'arithmetic.ts']

/** The text of the TypeScript file. */
export async function compileKernel() {
  const { default: asc } = await import('assemblyscript/asc')
  let binary
  const { error, stderr } = await asc.main(
    [
      'compose.ts',
      '--outFile',
      'compose.wasm',
      '--runtime',
      'stub',
      '--importMemory',
      '--noAssert',
      '-O3',
      '--enable',
      'simd',
    ],
    {
      readFile: (name) =>
        SOURCES.includes(name) ? readFileSync(new URL(name, import.meta.url), 'utf8') : null,
      writeFile: (name, contents) => {
        if (name === 'compose.wasm') binary = contents
      },
      listFiles: () => [],
    },
  )
  if (error) throw new Error(`${error.message}\n${stderr}`)
  const text = Buffer.from(binary)
    .toString('base64')
    .replace(/.{1,108}/g, "  '$&' +\n")
    .replace(/ \+\n$/, '\n')
  return `// Made by assembly/compile.mjs from assembly/compose.ts: a WebAssembly module, in base64.\nexport const KERNEL =\n${text}`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(TARGET, await compileKernel())
