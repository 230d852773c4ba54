export type { Ready } from './banner.ts';
export { dataFolder, projectRoot } from './folders.ts';
export { Output } from './output.ts';
export { Balancer } from './parts/balancer.ts';
export { guard } from './parts/guard.ts';
export type { PartSpec } from './parts/part.ts';
export { readPids } from './parts/pid-file.ts';
export { alive } from './parts/processes.ts';
export type { ServiceSpec } from './parts/service.ts';
export { Supervisor } from './parts/supervisor.ts';
export { freePort } from './ports.ts';
export { obtainRedis, type RedisBinary } from './redis/binary.ts';
export { unpackPackages } from './redis/debian-packages.ts';
export {
  type RedisOptions,
  type RunningRedis,
  redisArguments,
  redisUrlAt,
  redisUrlOf,
  startRedis,
} from './redis/server.ts';
export { REDIS_USERS, type RedisUser, redisPasswords, usersFile } from './redis/users.ts';
export { instancesOf, ONE_OF_EACH, type Scale } from './scale.ts';
export { developmentRedisPasswords, developmentSecrets } from './secrets.ts';
export { balancedPart, partNames, RECEIVER_SECRET, redisPart, servicePart, serviceSpecs } from './services.ts';
export { StackSettings } from './stack-settings.ts';
export { runInTerminal } from './terminal.ts';
export { signToken } from './tokens.ts';
