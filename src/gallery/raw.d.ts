/** Imports a file as text: `import text from './name.sh?raw'`. The build and the tests support this. */
declare module '*?raw' {
  const text: string
  export default text
}
