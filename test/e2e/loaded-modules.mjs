// Preloaded with `--import`: writes the address of every module that the program loads to $LOADED_MODULES.
import { appendFileSync } from 'node:fs'
import { createRequire, register } from 'node:module'

const file = process.env.LOADED_MODULES
const hook = `
import { appendFileSync } from 'node:fs'
export async function load(url, context, next) {
  appendFileSync(${JSON.stringify(file)}, url + '\\n')
  return next(url, context)
}`
register(`data:text/javascript,${encodeURIComponent(hook)}`)
process.once('exit', () => {
  for (const path of Object.keys(createRequire(import.meta.url).cache))
    appendFileSync(file, `file://${path}\n`)
})
