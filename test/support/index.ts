/**
 * The fixtures of the tests, from one place: a folder, a home, a server, a service and the binary. Each ends itself, with
 * the test or the file that made it. README.md has a test with each, and names the modules with more.
 */

export { whenOver } from './after-file.js'
// The binary, in processes of a place with a home and a folder.
export {
  BINARY,
  bash,
  createPlace,
  DIST,
  type Environment,
  filesBelow,
  type Place,
  processesOf,
  quoted,
  type Running,
  rushes,
  type Service,
  serve,
  start,
  startNode,
  withStateOfCli,
} from './binary.js'
// A home, in which command lines run in this process, with a service or with `scripted` responses.
export {
  type CliService,
  type CommandLine,
  createCliService,
  createHome,
  createListedHome,
  createLocalHome,
  type Home,
  type HomeOptions,
  LOOPBACK_URL,
  lines,
  objects,
  outputOf,
  type RunAtService,
  type RunOptions,
  runCli,
  SET,
  scripted,
  usageErrorOf,
  withListOf,
  withoutList,
  wordsOf,
} from './cli.js'
export { createManualClock, type ManualClock } from './clock.js'
// What a service in this process renders.
export {
  createCommandedEngine,
  createFamilyEngine,
  createInstantEngine,
  ONE_PIXEL_PNG,
  ONE_PIXEL_URL,
} from './engines.js'
// The journal of a home.
export { addRow, fillJournal, finishedState, rowsOf, withJournal } from './journal.js'
// A server that is not rushes, on a real port.
export {
  createGate,
  createModelServer,
  type ModelServer,
  type ServerAnswer,
  type ServerFault,
} from './model-servers/http.js'
// Connections on loopback.
export { listen, openNetwork } from './network.js'
// `rushes serve` for many users.
export { onePixel, overPort, personAt, quickEngines, serveQuickly } from './quick-service.js'
// Responses without a network.
export {
  rejection,
  responseOf,
  type Scripted,
  type ScriptedService,
  type Step,
  scriptedList,
} from './responses.js'
// A service in this process, and requests to it.
export {
  type Answer,
  type Asking,
  addAccount,
  administer,
  ask,
  created,
  createTestService,
  ended,
  FOX,
  finished,
  runOf,
  type TestService,
  type TestServiceOptions,
} from './service.js'
export { temporaryFolder } from './temporary-folder.js'
export { until } from './until.js'
