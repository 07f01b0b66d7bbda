// Finds the package that setup has put in place: PAWL_JOSE is its folder. An ordinary program writes
// import * as jose from 'jose'.
import { pathToFileURL } from 'node:url'

export const jose = await import(pathToFileURL(`${process.env.PAWL_JOSE}/dist/webapi/index.js`))

export const input = async () => {
  let text = ''
  for await (const chunk of process.stdin) text += chunk
  return JSON.parse(text)
}
