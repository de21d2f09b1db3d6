/** `worker-process <data> hold` renews the lease of the worker `held` and stays; `list` prints all workers. */
import { join } from 'node:path'
import { openSqliteStore } from '../../../src/service/store/sqlite/index.js'

const [, , data = '', deed = ''] = process.argv
const store = openSqliteStore(join(data, 'service.db'))
if (deed === 'hold') {
  await store.renewLease('held')
  process.stdout.write('held\n')
  setInterval(() => {}, 1_000)
  // Keeps the store, and so its lock, from being collected. The bundler removes a reference without an effect.
  process.once('exit', () => store.close())
} else {
  process.stdout.write(JSON.stringify(await store.listWorkers()))
  await store.close()
}
